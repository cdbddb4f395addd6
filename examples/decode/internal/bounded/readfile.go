// Package bounded reads files that nobody vouches for: as whole, but no more of them than they may have.
package bounded

import (
	"fmt"
	"io"
	"io/fs"
)

// ReadFile reads a file of at most limit bytes. Its errors name the file.
func ReadFile(dir fs.FS, name string, limit int64) ([]byte, error) {
	f, err := dir.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, limit+1))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	if int64(len(data)) > limit {
		return nil, fmt.Errorf("%s: it is longer than %d bytes", name, limit)
	}
	return data, nil
}
