package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
)

// A result is what became of a fault.
type result struct {
	// Killed says that a test failed, Line which and why.
	Killed bool   `json:"killed"`
	Line   string `json:"line,omitempty"`
	// Same says that the compiled code is the same with the fault, so that no test had to be run.
	Same bool `json:"same,omitempty"`
	// Tests is the hash of the tests that were run.
	Tests   string `json:"tests,omitempty"`
	Seconds int    `json:"seconds"`
}

func (r result) verdict() string {
	switch {
	case r.Killed:
		return "killed"
	case r.Same:
		return "same code"
	}
	return "survived"
}

// A state is a file of results by key, which is written after each.
type state struct {
	mu      sync.Mutex
	path    string
	results map[string]result
}

func defaultState() (string, error) {
	dir, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("no folder for results (give -state): %w", err)
	}
	return filepath.Join(dir, "ingot-mutate", "results.json"), nil
}

func openState(path string, fresh bool) (*state, error) {
	s := &state{path: path, results: map[string]result{}}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return nil, err
	}
	if fresh {
		return s, nil
	}
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return s, nil
	}
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(data, &s.results); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return s, nil
}

func (s *state) get(key string) (result, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r, ok := s.results[key]
	return r, ok
}

// put adds a result. The file is replaced as a whole, so that one that is there is always complete.
func (s *state) put(key string, r result) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.results[key] = r
	data, err := json.MarshalIndent(s.results, "", " ")
	if err != nil {
		return err
	}
	if err := os.WriteFile(s.path+".new", data, 0o644); err != nil {
		return err
	}
	return os.Rename(s.path+".new", s.path)
}
