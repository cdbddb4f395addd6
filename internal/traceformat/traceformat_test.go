package traceformat

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// file puts events behind the names of a process and a thread.
func file(events ...string) []byte {
	names := `{"ph":"M","name":"process_name","pid":1,"tid":0,"args":{"name":"p"}},{"ph":"M","name":"thread_name","pid":1,"tid":2,"args":{"name":"lane 2"}}`
	return fmt.Appendf(nil, `{"traceEvents":[%s],"displayTimeUnit":"ns","otherData":{"k":1}}`, strings.Join(append([]string{names}, events...), ","))
}

const at = `"pid":1,"tid":2,"ts":`

func TestGoodFiles(t *testing.T) {
	f, err := Check(file(
		`{"ph":"X","name":"a",`+at+`1,"dur":10}`, `{"ph":"s","name":"n","cat":"c","id":"7",`+at+`1}`, `{"ph":"X","name":"b",`+at+`1.5,"dur":9.5}`,
		`{"ph":"i","name":"post","s":"t",`+at+`2}`, `{"ph":"B","name":"x",`+at+`3}`, `{"ph":"B","name":"y",`+at+`4}`, `{"ph":"E",`+at+`5}`, `{"ph":"E","name":"x",`+at+`6}`,
		`{"ph":"f","bp":"e","name":"n","cat":"c","id":"7",`+at+`7}`, `{"ph":"C","name":"count","args":{"v":3},`+at+`8}`, `{"ph":"X","name":"c",`+at+`11,"dur":0}`))
	require.NoError(t, err)
	require.Len(t, f.Lane("p", "lane"), 11)
	require.Empty(t, f.Lane("q", "lane"))
	require.EqualValues(t, 1, f.Other["k"])
	_, err = Check(file())
	require.NoError(t, err)
}

func TestBadFiles(t *testing.T) {
	x := `{"ph":"X","name":"a",` + at + `1,"dur":10}`
	for want, data := range map[string][]byte{
		"unexpected end":            []byte("{"),
		"displayTimeUnit":           []byte(`{"traceEvents":[],"displayTimeUnit":"s"}`),
		"no phase":                  file(`{"name":"a",` + at + `1}`),
		"not known":                 file(`{"ph":"Q","name":"a",` + at + `1}`),
		"no process":                file(`{"ph":"X","name":"a","ts":1,"dur":1}`),
		"no name":                   file(`{"ph":"X",` + at + `1,"dur":1}`),
		"no time":                   file(`{"ph":"X","name":"a","pid":1,"tid":2,"dur":1}`),
		"before the begin":          file(`{"ph":"X","name":"a",` + at + `-1,"dur":1}`),
		"without a duration":        file(`{"ph":"X","name":"a",` + at + `1}`),
		"negative":                  file(`{"ph":"X","name":"a",` + at + `1,"dur":-1}`),
		"that is not complete":      file(`{"ph":"i","name":"a",` + at + `1,"dur":1}`),
		"a flow without":            file(`{"ph":"s","name":"a","cat":"c",` + at + `1}`),
		"scope":                     file(`{"ph":"i","s":"x","name":"a",` + at + `1}`),
		"binding point":             file(`{"ph":"f","bp":"x","id":"1","cat":"c","name":"a",` + at + `1}`),
		"metadata without name":     file(`{"ph":"M","name":"thread_name","pid":1,"tid":0}`),
		"metadata without sort":     file(`{"ph":"M","name":"thread_sort_index","pid":1,"tid":0}`),
		`metadata "other"`:          file(`{"ph":"M","name":"other","pid":1,"tid":0}`),
		"after one at 1":            file(x, `{"ph":"X","name":"b",`+at+`0.5,"dur":0}`),
		"has no name":               file(`{"ph":"X","name":"a","pid":1,"tid":3,"ts":1,"dur":1}`),
		"begins within a":           file(x, `{"ph":"X","name":"b",`+at+`2,"dur":10}`),
		"which is not what began":   file(`{"ph":"B","name":"a",`+at+`1}`, `{"ph":"E","name":"b",`+at+`2}`),
		"did not end":               file(`{"ph":"B","name":"a",` + at + `1}`),
		"ends that did not start":   file(`{"ph":"f","id":"1","cat":"c","name":"a",` + at + `1}`),
		"cannot unmarshal number":   file(`{"ph":3}`),
		"cannot unmarshal string i": file(`{"ph":"X","name":"a","pid":"1","tid":2,"ts":1,"dur":1}`),
	} {
		_, err := Check(data)
		require.ErrorContains(t, err, want)
	}
}

func FuzzCheck(f *testing.F) {
	f.Add(file(`{"ph":"X","name":"a",` + at + `1,"dur":10}`))
	f.Add(file(`{"ph":"E",`+at+`5}`, `{"ph":"t","name":"n","cat":"c","id":"7",`+at+`7}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		if file, err := Check(data); err == nil {
			file.Lane("", "")
		}
	})
}
