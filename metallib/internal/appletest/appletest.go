// Package appletest finds libraries that Apple's compiler made, as published in npm packages and a Go module, for tests.
package appletest

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/ingot-metal/ingot/internal/testenv"
)

// A File is one published library.
type File struct {
	Name string
	Data []byte
}

const (
	llama, llamaSum     = "llama.rn@0.3.11", "e0cec81b87fa4889d9fc81049bae66761787d0ee939ef3e42b6985288ced0e88"
	whisper, whisperSum = "whisper.rn@0.4.3", "e5020de11ec994842c290d4693091dffc510f349fe5c5062eba26fdfec58773e"
	gio, gioSum         = "gioui.org/shader@v1.0.8", "h1:6ks0o/A+b0ne7RzEqRZK5f4Gboz2CfG+mVliciy6+qA="
)

// Llama is ggml's library of llama.rn: 172 kernels in AIR 2.6 for iOS 17.5, of 2024.
func Llama(t testing.TB) File {
	return npm(t, llama, llamaSum, "package/cpp/ggml-llama.metallib")
}

// Whisper is ggml's library of whisper.rn, for iOS devices.
func Whisper(t testing.TB) File {
	return npm(t, whisper, whisperSum, "package/cpp/ggml-whisper.metallib")
}

// WhisperOthers are the libraries of whisper.rn for the simulator and for tvOS.
func WhisperOthers(t testing.TB) []File {
	return []File{
		npm(t, whisper, whisperSum, "package/cpp/ggml-whisper-sim.metallib"),
		npm(t, whisper, whisperSum, "package/ios/rnwhisper.xcframework/tvos-arm64/rnwhisper.framework/ggml-whisper.metallib"),
	}
}

func npm(t testing.TB, pkg, sum, member string) File {
	t.Helper()
	return File{pkg + "/" + filepath.Base(member), testenv.NPM(t, pkg, sum, member)}
}

// Gio are the 75 libraries of a Go module of shaders, kernels among them, in AIR 1.8, 1.11 and 2.2.
func Gio(t testing.TB) []File {
	t.Helper()
	cmd := exec.Command(testenv.Tool(t, "go"), "mod", "download", "-json", gio)
	cmd.Dir = t.TempDir() // outside of any module, whose go.sum it would change
	out, err := cmd.Output()
	var mod struct{ Dir, Sum, Error string }
	if jsonErr := json.Unmarshal(out, &mod); err != nil || jsonErr != nil || mod.Error != "" {
		if os.Getenv("CI") == "true" {
			t.Fatalf("needed in CI: cannot fetch %s: %v %s", gio, err, mod.Error)
		}
		t.Skipf("cannot fetch %s: %v %s", gio, err, mod.Error)
	}
	if mod.Sum != gioSum {
		t.Fatalf("%s has the sum %s, want %s", gio, mod.Sum, gioSum)
	}
	names, err := filepath.Glob(filepath.Join(mod.Dir, "*", "*.metallib*"))
	if err != nil || len(names) == 0 {
		t.Fatalf("no libraries in %s: %v", mod.Dir, err)
	}
	var files []File
	for _, name := range names {
		data, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, File{filepath.Base(name), data})
	}
	return files
}
