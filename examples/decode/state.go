package main

import (
	"errors"
	"fmt"

	"github.com/ingot-metal/ingot/nn"
)

// ending says why a text ended.
func ending(s nn.DecodeStatus) string {
	switch s {
	case nn.DecodeRunning:
		return "unfinished"
	case nn.DecodeEndToken:
		return "the model ended the text"
	case nn.DecodeOutputFull:
		return "as long as asked for"
	case nn.DecodeCacheFull:
		return "as long as the model allows"
	}
	return s.String()
}

var errNoLogit = errors.New("the model computed no finite logit: its weights do not fit its configuration, or are damaged")

// failure is an error if the text did not end as texts should.
func failure(s nn.DecodeStatus) error {
	switch s {
	case nn.DecodeRunning, nn.DecodeEndToken, nn.DecodeOutputFull, nn.DecodeCacheFull:
		return nil
	case nn.DecodeNoToken:
		return errNoLogit
	}
	return fmt.Errorf("the device stopped with %s", s)
}

// start writes a sequence's prompt, its tiles if it is the first sequence, and the state before the decode step of the token at
// position first: the last one of the prompt if tiles are read before, 0 if steps read it all.
func (m *model) start(sequence int, prompt []uint32, first int) error {
	if len(prompt) > m.longest {
		return fmt.Errorf("the prompt has %d tokens, the model was prepared for %d", len(prompt), m.longest)
	}
	state, err := nn.StartDecodeAt(prompt, first, m.kvStride())
	if err != nil {
		return err
	}
	if err := part(m.prompt, sequence, m.longest).Slice(0, len(prompt)).Write(prompt); err != nil {
		return err
	}
	if sequence == 0 {
		tiles := tileList(prompt, m.tileRows, m.kvStride())
		if err := m.tiles.Slice(0, len(tiles)).Write(tiles); err != nil {
			return err
		}
	}
	words := state.Words()
	return m.stateOf(sequence).Write(words[:])
}

// progress reads how far the texts are. It waits for the steps that were submitted.
func (m *model) progress() ([]nn.DecodeState, error) {
	words := make([]uint32, m.state.Len())
	if err := m.state.Read(words); err != nil {
		return nil, err
	}
	states := make([]nn.DecodeState, m.sequences)
	for i := range states {
		states[i] = nn.DecodeStateOf([nn.DecodeStateWords]uint32(words[i*nn.DecodeStateWords:]))
		if int64(states[i].Produced) > int64(m.n) {
			return nil, fmt.Errorf("the device says that it produced %d tokens, of at most %d", states[i].Produced, m.n)
		}
	}
	return states, nil
}

// produced reads the tokens of a text from number from on.
func (m *model) produced(sequence, from int, state nn.DecodeState) ([]uint32, error) {
	to := int(state.Produced)
	if to <= from {
		return nil, nil
	}
	tokens := make([]uint32, to-from)
	return tokens, part(m.output, sequence, m.n).Slice(from, to).Read(tokens)
}
