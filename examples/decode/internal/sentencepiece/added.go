package sentencepiece

import "fmt"

// Added is a token that others gave a model besides its own, as for turns of a conversation. It is itself wherever it stands in a text.
type Added struct {
	ID      uint32
	Text    string
	Control bool // it is not shown in texts
}

// Add gives a model that is not used yet more tokens, or other texts for some of its own. Ids between its own and those added have
// no text.
func (m *Model) Add(list []Added) error {
	for _, a := range list {
		if err := m.add(a); err != nil {
			return fmt.Errorf("sentencepiece: %w", err)
		}
	}
	return nil
}

func (m *Model) add(a Added) error {
	switch {
	case a.Text == "":
		return fmt.Errorf("the added token %d is empty", a.ID)
	case len(a.Text) > maxPieceBytes:
		return fmt.Errorf("the added token %d has %d bytes, the limit is %d", a.ID, len(a.Text), maxPieceBytes)
	case a.ID >= maxPieces:
		return fmt.Errorf("the added token %d: the limit is %d", a.ID, maxPieces)
	}
	for len(m.pieces) <= int(a.ID) {
		m.pieces = append(m.pieces, piece{kind: kindUnused})
	}
	if first, added := m.markers.Add(a.Text, a.ID); !added && first != a.ID {
		return fmt.Errorf("the added tokens %d and %d are both %.40q", first, a.ID, a.Text)
	}
	p := &m.pieces[a.ID]
	p.text, p.kind = a.Text, kindUserDefined
	if a.Control {
		p.kind = kindControl
	}
	return nil
}
