// SPDX-License-Identifier: Apache-2.0

package userdata

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"mime/multipart"
	"net/textproto"
)

// Write puts parts together as MIME multipart, in their order; Read takes them apart again. Equal parts make equal user
// data.
func Write(parts []Part) ([]byte, error) {
	var body bytes.Buffer
	writer := multipart.NewWriter(&body)
	// The boundary is a hash of all parts, so that no part can contain it.
	hash := sha256.New()
	for _, part := range parts {
		_, _ = fmt.Fprintf(hash, "%d %s %d ", len(part.MediaType), part.MediaType, len(part.Content)) // a hash takes everything
		_, _ = hash.Write(part.Content)
	}
	if err := writer.SetBoundary("muster-" + hex.EncodeToString(hash.Sum(nil)[:16])); err != nil {
		return nil, fmt.Errorf("writing user data: %w", err)
	}
	for _, part := range parts {
		header := textproto.MIMEHeader{"Content-Type": {part.MediaType}}
		content := part.Content
		if !plain(content) {
			header.Set("Content-Transfer-Encoding", "base64")
			content = lines(content)
		}
		w, err := writer.CreatePart(header)
		if err != nil {
			return nil, fmt.Errorf("writing user data: %w", err)
		}
		if _, err := w.Write(content); err != nil {
			return nil, fmt.Errorf("writing user data: %w", err)
		}
	}
	if err := writer.Close(); err != nil {
		return nil, fmt.Errorf("writing user data: %w", err)
	}
	header := "MIME-Version: 1.0\r\nContent-Type: multipart/mixed; boundary=\"" + writer.Boundary() + "\"\r\n\r\n"
	return append([]byte(header), body.Bytes()...), nil
}

// maxLine is that of RFC 5322, without its end.
const maxLine = 998

// plain reports whether content may stand in a MIME document as it is, and comes out of it as it was: ASCII in lines
// that are not too long, that is not taken for base64 or gzip.
func plain(content []byte) bool {
	length := 0
	for _, c := range content {
		if length++; c == '\n' {
			length = 0
		}
		if length > maxLine || c > '~' || c < ' ' && c != '\n' && c != '\t' {
			return false
		}
	}
	_, ambiguous := fromBase64(content)
	return !ambiguous
}

// lines is base64 in lines of 76 characters (RFC 2045).
func lines(content []byte) []byte {
	const length = 76
	text := base64.StdEncoding.AppendEncode(nil, content)
	var out bytes.Buffer
	for len(text) > length {
		_, _ = out.Write(text[:length]) // a buffer takes everything
		_ = out.WriteByte('\n')
		text = text[length:]
	}
	_, _ = out.Write(text)
	return out.Bytes()
}
