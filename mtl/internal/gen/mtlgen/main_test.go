package main

import (
	"os"
	"path/filepath"
	"testing"
)

func TestRun(t *testing.T) {
	dir := t.TempDir()
	stale := filepath.Join(dir, "zz_gone.go")
	own := filepath.Join(dir, "own.go")
	for _, path := range []string{stale, own} {
		if err := os.WriteFile(path, []byte("package mtl\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for range 2 { // the second time nothing changes
		if err := run(dir); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := os.Stat(stale); err == nil {
		t.Error("a file that is not generated any more stays")
	}
	for _, name := range []string{"own.go", "zz_device.go", "zz_messages.go"} {
		if _, err := os.Stat(filepath.Join(dir, name)); err != nil {
			t.Error(err)
		}
	}
	if err := run(filepath.Join(dir, "nowhere")); err == nil {
		t.Error("no error from a folder that is not there")
	}
}
