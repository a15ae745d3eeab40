// SPDX-License-Identifier: Apache-2.0

package stackrecord

import (
	"bytes"
	"compress/gzip"
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"muster.dev/muster/internal/platform/atomicfile"
)

// keySize is the size of the key in bytes.
const keySize = 32

// mostUnsealed bounds what is read of a sealed part, in bytes.
const mostUnsealed = 64 << 20

// OpenKey reads the key of stacks, or makes it if there is no file. A file that is damaged is an error: a key that is made anew
// opens no stack.
func OpenKey(path string) (cipher.AEAD, error) {
	raw, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		raw = make([]byte, keySize)
		if _, err := rand.Read(raw); err != nil {
			return nil, fmt.Errorf("making the key of stacks: %w", err)
		}
		err = atomicfile.Write(path, raw, 0o600)
	}
	if err != nil {
		return nil, fmt.Errorf("reading the key of stacks: %w", err)
	}
	if len(raw) != keySize {
		return nil, fmt.Errorf("the key of stacks %s has %d bytes: want %d; restore the file from a backup", path, len(raw), keySize)
	}
	block, err := aes.NewCipher(raw)
	if err != nil {
		return nil, fmt.Errorf("reading the key of stacks: %w", err)
	}
	return cipher.NewGCM(block)
}

// seal encrypts the JSON of a value for one object.
func seal(key cipher.AEAD, id string, value any) ([]byte, error) {
	var packed bytes.Buffer
	writer := gzip.NewWriter(&packed)
	if err := json.NewEncoder(writer).Encode(value); err != nil {
		return nil, fmt.Errorf("writing a stack: %w", err)
	}
	if err := writer.Close(); err != nil {
		return nil, fmt.Errorf("writing a stack: %w", err)
	}
	nonce := make([]byte, key.NonceSize(), key.NonceSize()+packed.Len()+key.Overhead())
	if _, err := rand.Read(nonce); err != nil {
		return nil, fmt.Errorf("sealing a stack: %w", err)
	}
	return key.Seal(nonce, nonce, packed.Bytes(), []byte(id)), nil
}

// errSealed is the error of a part that the key does not open.
var errSealed = errors.New("the stack was sealed with another key, or was changed by hand: restore the key of stacks from a backup")

// unseal decrypts what seal made for the same object. Numbers keep their text.
func unseal(key cipher.AEAD, id string, sealed []byte, into any) error {
	if len(sealed) < key.NonceSize() {
		return errSealed
	}
	packed, err := key.Open(nil, sealed[:key.NonceSize()], sealed[key.NonceSize():], []byte(id))
	if err != nil {
		return errSealed
	}
	reader, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		return fmt.Errorf("reading a stack: %w", err)
	}
	decoder := json.NewDecoder(io.LimitReader(reader, mostUnsealed))
	decoder.UseNumber()
	if err := decoder.Decode(into); err != nil {
		return fmt.Errorf("reading a stack: %w", err)
	}
	return nil
}
