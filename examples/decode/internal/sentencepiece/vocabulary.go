package sentencepiece

import "fmt"

// Vocabulary is a model as GGUF files embed it: a text, a score and a type for each token.
type Vocabulary struct {
	Texts  []string
	Scores []float64
	Types  []int64 // as numbered in sentencepiece_model.proto: 1 normal, 2 unknown, 3 control, 4 user-defined, 5 unused, 6 byte

	Unknown     uint32 // what stands for a character that there is no way to spell, unless a token has the type unknown
	DummyPrefix bool   // a text is encoded with a space before it
}

// New makes a model of it. Characters without a token are spelled in bytes if there is a token for every byte.
func New(v Vocabulary) (*Model, error) {
	m, err := newModel(v)
	if err != nil {
		return nil, fmt.Errorf("sentencepiece: %w", err)
	}
	return m, nil
}

func newModel(v Vocabulary) (*Model, error) {
	switch {
	case len(v.Texts) > maxPieces:
		return nil, fmt.Errorf("there are %d pieces, the limit is %d", len(v.Texts), maxPieces)
	case len(v.Scores) != len(v.Texts):
		return nil, fmt.Errorf("there are %d scores for %d pieces", len(v.Scores), len(v.Texts))
	case len(v.Types) != len(v.Texts):
		return nil, fmt.Errorf("there are %d types for %d pieces", len(v.Types), len(v.Texts))
	}
	m := &Model{unknownText: unknownText, dummyPrefix: v.DummyPrefix, unknown: v.Unknown}
	bytes, haveUnknown := 0, false
	for i, text := range v.Texts {
		p := piece{text: text, score: float32(v.Scores[i]), kind: kind(min(uint64(v.Types[i]), 255))}
		switch {
		case len(text) > maxPieceBytes:
			return nil, fmt.Errorf("piece %d has %d bytes, the limit is %d", i, len(text), maxPieceBytes)
		case p.score != p.score:
			return nil, fmt.Errorf("the score of piece %d is not a number", i)
		case p.kind == kindByte:
			bytes++
		case p.kind == kindUnknown:
			haveUnknown = true
		}
		m.pieces = append(m.pieces, p)
	}
	if !haveUnknown {
		if uint64(v.Unknown) >= uint64(len(m.pieces)) {
			return nil, fmt.Errorf("the unknown piece is %d, outside the vocabulary of %d", v.Unknown, len(m.pieces))
		}
		if p := &m.pieces[v.Unknown]; p.kind == kindControl {
			p.kind = kindUnknown
		}
	}
	return m, m.index(bytes == 256)
}
