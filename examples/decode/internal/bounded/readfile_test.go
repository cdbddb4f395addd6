package bounded

import (
	"errors"
	"io/fs"
	"strings"
	"testing"
	"testing/fstest"
)

func TestReadFile(t *testing.T) {
	dir := fstest.MapFS{"a/text": {Data: []byte("12345")}}
	for _, limit := range []int64{5, 6, 1 << 40} {
		if data, err := ReadFile(dir, "a/text", limit); err != nil || string(data) != "12345" {
			t.Errorf("%d: %q %v", limit, data, err)
		}
	}
	if _, err := ReadFile(dir, "a/text", 4); err == nil || err.Error() != "a/text: it is longer than 4 bytes" {
		t.Error(err)
	}
	if _, err := ReadFile(dir, "b", 4); !errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), "b") {
		t.Error(err)
	}
	if _, err := ReadFile(dir, "a", 4); err == nil || !strings.Contains(err.Error(), "a") {
		t.Error("a folder was read:", err)
	}
}
