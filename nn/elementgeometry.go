package nn

// Geometry of the kernels that work on elements, and of the argmax in passes.
const (
	// ElementThreads is the size of a threadgroup of the kernels that have a thread for each element.
	ElementThreads = 256
	// ArgmaxGroup is how many numbers a threadgroup of ArgmaxPass chooses from, a thread for each.
	ArgmaxGroup = 256
)

// ElementGroups is the number of threadgroups of a kernel that has a thread for each of n elements.
func ElementGroups(n int) int { return ceilDiv(n, ElementThreads) }

// ArgmaxGroups is the number of threadgroups of ArgmaxPass for n numbers, and so the number of its results.
func ArgmaxGroups(n int) int { return ceilDiv(n, ArgmaxGroup) }

// ArgmaxPasses is the number of passes of Argmax for n logits, at least 1.
func ArgmaxPasses(n int) int {
	passes := 1
	for n = ArgmaxGroups(n); n > 1; n = ArgmaxGroups(n) {
		passes++
	}
	return passes
}

// ArgmaxScratch is the number of elements that Argmax needs of each scratch slice for n logits: the results of all passes
// but the last. Up to ArgmaxGroup logits need none.
func ArgmaxScratch(n int) int {
	scratch := 0
	for n = ArgmaxGroups(n); n > 1; n = ArgmaxGroups(n) {
		scratch += n
	}
	return scratch
}
