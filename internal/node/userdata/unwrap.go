// SPDX-License-Identifier: Apache-2.0

package userdata

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
)

// unwrap takes off base64 and then gzip, if they are there: the order of nodeadm (amazon-eks-ami,
// nodeadm/internal/configprovider/userdata.go). Nothing that is meant to be read as it stands is base64: NodeConfigs
// and MIME headers have colons, scripts begin with "#!".
func (r *reader) unwrap(data []byte) ([]byte, error) {
	if decoded, ok := fromBase64(data); ok {
		data = decoded
	}
	data, err := r.gunzip(data)
	if err != nil {
		return nil, err
	}
	return bytes.TrimPrefix(data, []byte("\xef\xbb\xbf")), nil // the byte order mark of some editors
}

func fromBase64(data []byte) ([]byte, bool) {
	text := withoutSpace(data)
	if len(text) == 0 {
		return nil, false
	}
	decoded, err := base64.StdEncoding.AppendDecode(nil, text)
	return decoded, err == nil
}

// withoutSpace drops line breaks and blanks, which tools put into base64.
func withoutSpace(data []byte) []byte {
	return bytes.Map(func(c rune) rune {
		switch c {
		case ' ', '\t', '\r', '\n':
			return -1
		}
		return c
	}, data)
}

func (r *reader) gunzip(data []byte) ([]byte, error) {
	if !bytes.HasPrefix(data, []byte{0x1f, 0x8b}) {
		return data, nil
	}
	reader, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		return nil, fmt.Errorf("begins as gzip and is none: %w", err)
	}
	plain, err := io.ReadAll(io.LimitReader(reader, int64(r.left)+1))
	switch {
	case errors.Is(err, io.ErrUnexpectedEOF):
		return nil, errors.New("gzip ends too early: the user data was cut off")
	case err != nil:
		return nil, fmt.Errorf("gzip is damaged: %w", err)
	case len(plain) > r.left:
		return nil, fmt.Errorf("gzip holds more than the %d bytes that are unpacked at most", MaxUnpacked)
	}
	r.left -= len(plain)
	return plain, nil
}
