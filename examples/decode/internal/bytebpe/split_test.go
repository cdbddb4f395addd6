package bytebpe

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func cut(s Split, text string) []string {
	var out []string
	s.words(text, func(w string) { out = append(out, w) })
	return out
}

// What the regular expressions match, worked out by hand from their alternatives.
func TestSplit(t *testing.T) {
	for _, c := range []struct{ text, gpt2, llama3, qwen2 string }{
		{"Hello world", "Hello| world", "Hello| world", "Hello| world"},
		{"I'll say: it's", "I|'ll| say|:| it|'s", "I|'ll| say|:| it|'s", "I|'ll| say|:| it|'s"},
		{"I'LL", "I|'|LL", "I|'LL", "I|'LL"},
		{"it'\u017f", "it|'|\u017f", "it|'\u017f", "it|'\u017f"},
		{"a'x", "a|'|x", "a|'x", "a|'x"},
		{"12345 678", "12345| 678", "123|45| |678", "1|2|3|4|5| |6|7|8"},
		{"a  b", "a| | b", "a| | b", "a| | b"},
		{"a   ", "a|   ", "a|   ", "a|   "},
		{"a \n\n b", "a| \n\n| b", "a| \n\n| b", "a| \n\n| b"},
		{"a\n\n  b", "a|\n\n |\u2423b", "a|\n\n| |\u2423b", "a|\n\n| |\u2423b"},
		{"x.\n\ny", "x|.|\n|\n|y", "x|.\n\n|y", "x|.\n\n|y"},
		{"\n", "\n", "\n", "\n"},
		{"\ta", "\t|a", "\ta", "\ta"},
		{"$a", "$|a", "$a", "$a"},
		{" $a", " $|a", " $|a", " $|a"},
		{"...a", "...|a", "...|a", "...|a"},
		{"\r\nx", "\r|\n|x", "\r\n|x", "\r\n|x"},
		{"\u00a0\u3000x", "\u00a0|\u3000|x", "\u00a0|\u3000x", "\u00a0|\u3000x"},
		{"\u4f60\u597d\uff0c\u4e16", "\u4f60\u597d|\uff0c|\u4e16", "\u4f60\u597d|\uff0c\u4e16", "\u4f60\u597d|\uff0c\u4e16"},
		{"e\u0301a", "e|\u0301|a", "e|\u0301a", "e|\u0301a"},
		{"\u0661\u0662\u0663\u0664", "\u0661\u0662\u0663\u0664", "\u0661\u0662\u0663|\u0664", "\u0661|\u0662|\u0663|\u0664"},
		{"'", "'", "'", "'"},
		{" '", " '", " '", " '"},
		{"\xff\xfea", "\xff\xfe|a", "\xff\xfe|a", "\xff\xfe|a"},
		{"\xffa", "\xff|a", "\xffa", "\xffa"},
	} {
		for s, want := range map[Split]string{SplitGPT2: c.gpt2, SplitLlama3: c.llama3, SplitQwen2: c.qwen2} {
			require.Equal(t, strings.Split(strings.ReplaceAll(want, "\u2423", " "), "|"), cut(s, c.text), "%s: %q", s, c.text)
		}
	}
	for text, want := range map[string]string{
		"in 2024": "in| |2|0|2|4", "a  1b": "a|  |1|b", "  x 1\n": " | x| |1|\n", "it's 5's": "it|'s| |5|'s", "$1.50": "$|1|.|5|0", "a   ": "a|   ",
		"\u2167\u00bd": "\u2167|\u00bd", "I'LL": "I|'|LL",
	} {
		require.Equal(t, strings.Split(want, "|"), cut(SplitSmolLM, text), "%q", text)
	}
}

func TestSplitNames(t *testing.T) {
	for s := range Split(len(rules)) {
		named, err := SplitNamed(s.String())
		require.NoError(t, err)
		require.Equal(t, s, named)
		same, err := splitOf(s.Expression())
		require.NoError(t, err)
		require.Equal(t, s, same)
	}
	_, err := SplitNamed("tekken")
	require.EqualError(t, err, `text is to be cut into words by "tekken": known are the rules gpt-2, llama-bpe, qwen2, smollm`)
	require.Equal(t, "Split(9)", Split(9).String())
	require.Empty(t, Split(9).Expression())
}
