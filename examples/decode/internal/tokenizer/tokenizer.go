// Package tokenizer is what the decoder needs of a tokenizer, whichever it is.
//
// There are two: package sentencepiece for byte-pair encoding with scores, of Gemma, Llama 2 and Mistral, and package bytebpe for
// byte-level byte-pair encoding with merge rules, of Llama 3 and Qwen. Package checkpoint reads the one that a model comes with.
package tokenizer

// Tokenizer turns text into token ids and back. It is safe for concurrent use.
type Tokenizer interface {
	// Len is the number of token ids.
	Len() int
	// Encode is the sequence of tokens that spells text, without a marker of its beginning. Markers that stand in text, as
	// templates of conversations have them, become themselves.
	Encode(text string) []uint32
	// NewDecoder begins to turn tokens into text. What they continue may be anything, so that a space at the beginning stays.
	NewDecoder() Decoder
}

// Decoder turns tokens into text one by one.
type Decoder interface {
	// Next is the text that is certain after one more token: whole characters, none for a token that has no text.
	Next(id uint32) string
	// Flush ends the text: bytes of an unfinished character come out as U+FFFD.
	Flush() string
}
