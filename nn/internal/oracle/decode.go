package oracle

import "slices"

// Decode is what a decode step leaves behind for the next one, and the lists it reads from and writes to. On the device
// all of it is memory, so that a replayed step needs nothing from the host.
type Decode struct {
	Token       uint32 // what the step embeds
	Position    uint32 // of that token in the text
	KVLength    uint32 // cache positions that are filled once the step has stored its own
	CacheOffset uint32 // element of the cache where the step stores its keys and values
	Status      DecodeStatus

	Prompt []uint32 // ids fed before the model speaks; the first is the first step's token
	Output []uint32 // tokens the model produced, at most OutputCapacity

	OutputCapacity int
	KVCapacity     int // positions
	KVStride       int // elements per position
	End            []uint32
}

// DecodeStatus says whether the text goes on, and if not, why.
type DecodeStatus uint32

// The states of a text.
const (
	Running         DecodeStatus = iota
	EndToken                     // an end token was produced; it is the last of the output
	OutputFull                   // the output list has no room for another token
	CacheFull                    // the cache has no room for another position
	NothingToChoose              // no logit was finite
)

// StartDecode is the state before the first step: the first token of the prompt, at position 0.
func StartDecode(prompt []uint32, outputCapacity, kvCapacity, kvStride int, end ...uint32) Decode {
	d := Decode{
		KVLength: 1, Prompt: prompt, End: end,
		OutputCapacity: outputCapacity, KVCapacity: kvCapacity, KVStride: kvStride,
	}
	if len(prompt) > 0 {
		d.Token = prompt[0]
	}
	return d
}

// Advance moves on after a step that chose the token argmax.
//
// While the prompt has a token for the next position, that is the next one, and the choice is dropped. After that it is the
// choice, which also goes to the end of the output. The text ends with an end token, with a choice that is [NoToken], when
// the output is full, after the token that fills it or before it if it has no room at all, and when the cache has no room
// for the next position; the first of these that applies is the status. Otherwise position and KV length grow by one and
// the cache offset by KVStride. When the text has ended the counters keep their values and Advance does nothing more, so a
// step may be repeated any number of times.
func (d *Decode) Advance(argmax uint32) {
	if d.Status != Running {
		return
	}
	next := int(d.Position) + 1
	token := argmax
	if next < len(d.Prompt) {
		token = d.Prompt[next]
	} else if d.Status = d.produce(argmax); d.Status != Running {
		return
	}
	if next >= d.KVCapacity {
		d.Status = CacheFull
		return
	}
	d.Token = token
	d.Position++
	d.KVLength++
	d.CacheOffset += uint32(d.KVStride)
}

func (d *Decode) produce(token uint32) DecodeStatus {
	switch {
	case token == NoToken:
		return NothingToChoose
	case len(d.Output) >= d.OutputCapacity:
		return OutputFull
	}
	d.Output = append(slices.Clip(d.Output), token)
	switch {
	case slices.Contains(d.End, token):
		return EndToken
	case len(d.Output) >= d.OutputCapacity:
		return OutputFull
	}
	return Running
}
