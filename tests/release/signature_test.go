package release

import (
	"bytes"
	"crypto/sha256"
	"debug/macho"
	"encoding/binary"
	"errors"
	"fmt"
)

// What a code signature is made of: the numbers are those of Apple's cs_blobs.h. It is big-endian, unlike the file.
const (
	loadCodeSignature = 0x1d       // LC_CODE_SIGNATURE
	magicSignature    = 0xfade0cc0 // CSMAGIC_EMBEDDED_SIGNATURE
	magicDirectory    = 0xfade0c02 // CSMAGIC_CODEDIRECTORY
	flagAdHoc         = 0x2        // CS_ADHOC
	hashSHA256        = 2          // CS_HASHTYPE_SHA256
)

// checkAdHoc says why a Mach-O file for one processor has no valid ad-hoc signature: every page must have the hash that the
// signature's code directory says, up to the signature itself.
func checkAdHoc(file []byte) error {
	f, err := macho.NewFile(bytes.NewReader(file))
	if err != nil {
		return err
	}
	offset, size := 0, 0
	for _, l := range f.Loads {
		if raw := l.Raw(); f.ByteOrder.Uint32(raw) == loadCodeSignature {
			offset, size = int(f.ByteOrder.Uint32(raw[8:])), int(f.ByteOrder.Uint32(raw[12:]))
		}
	}
	if size == 0 {
		return errors.New("there is no signature")
	}
	if offset+size > len(file) {
		return errors.New("the signature does not lie within the file")
	}
	word := binary.BigEndian.Uint32
	signature := file[offset : offset+size]
	if magic := word(signature); magic != magicSignature {
		return fmt.Errorf("the signature begins with %#x", magic)
	}
	for i := range int(word(signature[8:])) {
		if blob := signature[word(signature[12+8*i+4:]):]; word(blob) == magicDirectory {
			return checkDirectory(file, offset, blob)
		}
	}
	return errors.New("the signature has no code directory")
}

func checkDirectory(file []byte, limit int, d []byte) error {
	word := binary.BigEndian.Uint32
	flags, hashes, pages, covered := word(d[12:]), int(word(d[16:])), int(word(d[28:])), int(word(d[32:]))
	hashSize, hashType, page := int(d[36]), d[37], 1<<d[39]
	switch {
	case flags&flagAdHoc == 0:
		return fmt.Errorf("the flags %#x have no ad-hoc bit", flags)
	case hashType != hashSHA256 || hashSize != sha256.Size:
		return fmt.Errorf("hashes are of type %d and %d bytes", hashType, hashSize)
	case covered != limit:
		return fmt.Errorf("%d bytes are signed, of %d before the signature", covered, limit)
	case pages != (covered+page-1)/page:
		return fmt.Errorf("there are %d hashes for %d bytes in pages of %d", pages, covered, page)
	}
	for i := range pages {
		have := sha256.Sum256(file[i*page : min((i+1)*page, covered)])
		if !bytes.Equal(have[:], d[hashes+i*hashSize:hashes+(i+1)*hashSize]) {
			return fmt.Errorf("page %d of %d has another hash", i, pages)
		}
	}
	return nil
}
