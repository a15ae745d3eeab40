// SPDX-License-Identifier: Apache-2.0

package userdata

import (
	"bytes"
	"fmt"

	"muster.dev/muster/internal/node/nodeconfig"
)

// Read takes user data apart. The whole may be base64, gzip or both (base64 outside), then MIME multipart; each part
// may be base64 or gzip again. Without MIME, content that begins as a script is one and all else is a NodeConfig. Empty
// user data has no parts.
func Read(raw []byte) ([]Part, error) { return read("user data", raw, MaxRaw) }

// ReadFile is Read for the content of a file, which may be longer; its parts go by the name of the file.
func ReadFile(name string, raw []byte) ([]Part, error) { return read(name, raw, MaxUnpacked) }

func read(name string, raw []byte, most int) ([]Part, error) {
	if len(raw) > most {
		return nil, fmt.Errorf("%s has %d bytes; at most %d are read", name, len(raw), most)
	}
	r := reader{left: MaxUnpacked}
	content, err := r.unwrap(raw)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	if len(bytes.TrimSpace(content)) == 0 {
		return nil, nil
	}
	header, body, err := mimeHeader(content)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	if header == nil {
		return []Part{{MediaType: guess(content, nodeconfig.MediaType), Name: name, Content: content}}, nil
	}
	if err := r.entity(entity{name: name, header: header, body: body}); err != nil {
		return nil, err
	}
	return r.parts, nil
}

// reader gathers parts within bounds.
type reader struct {
	parts []Part
	left  int // bytes that gzip may still yield
}

// guess tells the type of content that has no header.
func guess(content []byte, otherwise string) string {
	for _, b := range beginnings() {
		if bytes.HasPrefix(content, []byte(b.text)) {
			return b.mediaType
		}
	}
	return otherwise
}
