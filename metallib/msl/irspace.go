package msl

import (
	"regexp"
	"strconv"
	"strings"
)

// Before opt sees the text of a module, it is changed in a few places.
//
// Two address spaces of clang's are one of AIR's: the generic one (4) and the private one (0). foldGeneric renames the
// former in the text of a module, and makes the casts between them bitcasts. It takes out what has been read already
// (annotations) and what no later stage needs, too.

var (
	genericSpace   = regexp.MustCompile(`ptr addrspace\(4\)`)
	genericSuffix  = regexp.MustCompile(`(@llvm\.[\w.]*?)\.p4\b`)
	nullCast       = regexp.MustCompile(`addrspacecast \(ptr(?: addrspace\(\d+\))? null to ptr(?: addrspace\(\d+\))?\)`)
	declareName    = regexp.MustCompile(`^declare .*?(@(?:"[^"]*"|[\w.$]+))\(`)
	constantLoad   = regexp.MustCompile(`^  %.* = load .*, ptr addrspace\(2\) %`)
	pureAttributes = regexp.MustCompile(`\bmemory\(none\)`)
	pointerSpace   = regexp.MustCompile(`^ptr(?: addrspace\((\d+)\))?`)
)

func foldGeneric(module string) string {
	nodes := 0
	for _, line := range strings.Split(module, "\n") {
		if m := metaLine.FindStringSubmatch(line); m != nil {
			n, _ := strconv.Atoi(m[1][1:])
			nodes = max(nodes, n+1)
		}
	}
	invariant := "!" + strconv.Itoa(nodes)
	var b strings.Builder
	b.Grow(len(module))
	declared := map[string]bool{}
	for _, line := range strings.Split(module, "\n") {
		switch {
		case strings.HasPrefix(line, "@llvm.global.annotations"), strings.HasPrefix(line, "; "),
			strings.Contains(line, "call void @llvm.var.annotation"):
			continue
		case strings.HasPrefix(line, "attributes #"):
			// Everything is inlined: Metal's form of calls that pass structs is not ours to guess.
			line = strings.Replace(line, " noinline", "", 1)
			// C++ for OpenCL calls every function convergent; one that touches nothing but its operands need not be.
			if pureAttributes.MatchString(line) {
				line = strings.Replace(line, " convergent", "", 1)
			}
		case strings.HasPrefix(line, "!"), line == "":
		default:
			line = genericSpace.ReplaceAllString(line, "ptr")
			for strings.Contains(line, ".p4") {
				folded := genericSuffix.ReplaceAllString(line, "$1.p0")
				if folded == line {
					break
				}
				line = folded
			}
			// OpenCL leaves open what null is in other address spaces; in AIR it is zero in all.
			line = foldCasts(nullCast.ReplaceAllString(line, "null"))
			// Nothing changes constant memory while a kernel runs, which no rule of LLVM's says of address space 2.
			if constantLoad.MatchString(line) {
				line += ", !invariant.load " + invariant
			}
			if m := declareName.FindStringSubmatch(line); m != nil {
				if declared[m[1]] {
					continue // the overloads for both spaces are one now
				}
				declared[m[1]] = true
			}
		}
		b.WriteString(line)
		b.WriteByte('\n')
	}
	b.WriteString(invariant + " = !{}\n")
	return b.String()
}

// foldCasts makes each addrspacecast of a line whose spaces are now equal a bitcast.
func foldCasts(line string) string {
	const cast = "addrspacecast "
	for from := 0; ; {
		i := strings.Index(line[from:], cast)
		if i < 0 {
			return line
		}
		i += from
		from = i + len(cast)
		s := strings.TrimPrefix(line[from:], "(")
		source := pointerSpace.FindStringSubmatch(s)
		to := topLevelTo(s)
		if source == nil || to < 0 {
			continue
		}
		target := pointerSpace.FindStringSubmatch(s[to:])
		if target != nil && target[1] == source[1] {
			line = line[:i] + "bitcast " + line[from:]
			from = i
		}
	}
}

// topLevelTo is the index after " to " outside parentheses.
func topLevelTo(s string) int {
	depth := 0
	for i := range len(s) {
		switch s[i] {
		case '(':
			depth++
		case ')':
			depth--
		case ' ':
			if depth == 0 && strings.HasPrefix(s[i:], " to ") {
				return i + len(" to ")
			}
		}
	}
	return -1
}
