package oracle

// Decode is the state that a decode step leaves behind for the next one, and the lists it reads from and writes to. On
// the device each is memory, so that a replayed step needs nothing from the host.
type Decode struct {
	Token    uint32 // what the next step embeds
	Position uint32 // of that token in the text
	KVLength uint32 // cache rows that are valid during the next step
	KVOffset uint32 // element of the cache where the next step stores its keys and values
	Count    uint32 // steps advanced so far

	Prompt []uint32 // ids fed before the model speaks; Prompt[0] is the first token
	Output []uint32 // Output[i] is the model's choice after step i, during the prompt as well
}

// StartDecode is the state before the first step: the first token of the prompt at position 0, one cache row about to be
// valid, and room for as many choices as the cache has rows.
func StartDecode(prompt []uint32, capacity int) Decode {
	d := Decode{KVLength: 1, Prompt: prompt, Output: make([]uint32, capacity)}
	if len(prompt) > 0 {
		d.Token = prompt[0]
	}
	return d
}

// Advance moves on after a step that chose the token argmax; rowSize is the elements of one cache row, capacity the rows
// of the cache.
//
// The choice is appended to the output. The next token is the prompt's next one while there is one, the choice after
// that. Position and KVLength grow by one, KVOffset by rowSize. After as many steps as the cache has rows the state
// stands still: nothing is appended and no counter moves, so that counters cannot wrap however often a step is repeated.
func (d *Decode) Advance(argmax uint32, rowSize, capacity int) {
	if uint64(d.Count) >= uint64(capacity) || int(d.Count) >= len(d.Output) {
		return
	}
	d.Output[d.Count] = argmax
	d.Count++
	d.Token = argmax
	if int(d.Count) < len(d.Prompt) {
		d.Token = d.Prompt[d.Count]
	}
	d.Position++
	d.KVLength++
	d.KVOffset += uint32(rowSize)
}
