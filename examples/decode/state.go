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

// failure is an error if the text did not end as texts should.
func failure(s nn.DecodeStatus) error {
	switch s {
	case nn.DecodeRunning, nn.DecodeEndToken, nn.DecodeOutputFull, nn.DecodeCacheFull:
		return nil
	case nn.DecodeNoToken:
		return errors.New("the model computed no finite logit: its weights do not fit its configuration, or are damaged")
	}
	return fmt.Errorf("the device stopped with %s", s)
}

// start writes a prompt, its tiles, and the state before the decode step of the token at position first: the last one of
// the prompt if tiles are read before, 0 if steps read it all. It is all that the host writes.
func (m *model) start(prompt []uint32, first int) error {
	if len(prompt) > m.prompt.Len() {
		return fmt.Errorf("the prompt has %d tokens, the model was prepared for %d", len(prompt), m.prompt.Len())
	}
	state, err := nn.StartDecodeAt(prompt, first, m.kvStride())
	if err != nil {
		return err
	}
	if err := m.prompt.Slice(0, len(prompt)).Write(prompt); err != nil {
		return err
	}
	tiles := tileList(prompt, m.kvStride())
	if err := m.tiles.Slice(0, len(tiles)).Write(tiles); err != nil {
		return err
	}
	words := state.Words()
	return m.state.Write(words[:])
}

// progress reads how far the text is. It waits for the steps that were submitted.
func (m *model) progress() (nn.DecodeState, error) {
	var words [nn.DecodeStateWords]uint32
	if err := m.state.Read(words[:]); err != nil {
		return nn.DecodeState{}, err
	}
	state := nn.DecodeStateOf(words)
	if int64(state.Produced) > int64(m.output.Len()) {
		return state, fmt.Errorf("the device says that it produced %d tokens, of at most %d", state.Produced, m.output.Len())
	}
	return state, nil
}

// produced reads the tokens of the text from number from on.
func (m *model) produced(from int, state nn.DecodeState) ([]uint32, error) {
	to := int(state.Produced)
	if to <= from {
		return nil, nil
	}
	tokens := make([]uint32, to-from)
	return tokens, m.output.Slice(from, to).Read(tokens)
}
