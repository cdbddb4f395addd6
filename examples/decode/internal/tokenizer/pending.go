package tokenizer

import "unicode/utf8"

// Pending is the bytes of a text that may end within a character: decoders hold them back until it is whole.
type Pending []byte

// Take removes and returns the whole characters; bytes that are not UTF-8 become U+FFFD, one each. At the end of a text, those of an
// unfinished character do too, so that nothing stays.
func (p *Pending) Take(end bool) string {
	var out []byte
	rest := *p
	for len(rest) > 0 && (end || utf8.FullRune(rest)) {
		r, n := utf8.DecodeRune(rest)
		out = utf8.AppendRune(out, r)
		rest = rest[n:]
	}
	*p = append((*p)[:0], rest...)
	return string(out)
}
