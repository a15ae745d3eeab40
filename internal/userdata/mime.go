// SPDX-License-Identifier: Apache-2.0

package userdata

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"mime"
	"mime/multipart"
	"mime/quotedprintable"
	"net/mail"
	"net/textproto"
	"regexp"
	"strings"
)

// entity is one MIME entity: a document, or several in multipart.
type entity struct {
	name   string
	header textproto.MIMEHeader
	body   []byte
	depth  int
}

var (
	beginsAsMIME = regexp.MustCompile(`(?i)^(mime-version|content-[a-z-]+)[ \t]*:`)
	// hasType finds the header among others, before the first empty line.
	hasType = regexp.MustCompile(`(?i)^([!-9;-~][^\n]*\n|[ \t]+[!-~][^\n]*\n)*?content-type[ \t]*:`)
)

// mimeHeader splits a MIME document. There is no header, and no error, in what is none.
func mimeHeader(content []byte) (textproto.MIMEHeader, []byte, error) {
	content = bytes.TrimLeft(content, "\r\n")
	if bytes.HasPrefix(content, []byte("#")) || !beginsAsMIME.Match(content) && !hasType.Match(content) {
		return nil, nil, nil
	}
	message, err := mail.ReadMessage(bytes.NewReader(content))
	if err != nil {
		return nil, nil, fmt.Errorf("begins as a MIME document, and its header cannot be read: %w", err)
	}
	if message.Header.Get("Content-Type") == "" {
		return nil, nil, errors.New("begins as a MIME document, and its header has no Content-Type")
	}
	body, err := io.ReadAll(message.Body)
	if err != nil {
		return nil, nil, fmt.Errorf("reading a MIME document: %w", err)
	}
	return textproto.MIMEHeader(message.Header), body, nil
}

func (r *reader) entity(e entity) error {
	mediaType, parameters := TypePlain, map[string]string(nil)
	if text := e.header.Get("Content-Type"); text != "" {
		var err error
		if mediaType, parameters, err = mime.ParseMediaType(text); err != nil {
			return fmt.Errorf("%s: Content-Type %q: %w", e.name, text, err)
		}
	}
	if strings.HasPrefix(mediaType, "multipart/") {
		return r.multipart(e, parameters["boundary"])
	}
	content, err := decodeTransfer(e.header.Get("Content-Transfer-Encoding"), e.body)
	if err == nil {
		content, err = r.unwrap(content)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", e.name, err)
	}
	if mediaType == TypePlain || mediaType == "application/octet-stream" { // a type that says nothing
		mediaType = guess(content, mediaType)
	}
	if len(r.parts) == MaxParts {
		return fmt.Errorf("%s: there are more than %d parts", e.name, MaxParts)
	}
	r.parts = append(r.parts, Part{MediaType: mediaType, Name: e.name, Content: content})
	return nil
}

func (r *reader) multipart(e entity, boundary string) error {
	switch {
	case boundary == "":
		return fmt.Errorf("%s: Content-Type is multipart and names no boundary", e.name)
	case e.depth == MaxDepth:
		return fmt.Errorf("%s: multipart lies in multipart more than %d deep", e.name, MaxDepth)
	}
	reader := multipart.NewReader(bytes.NewReader(e.body), boundary)
	separator := ", part "
	if e.depth > 0 {
		separator = "."
	}
	for number := 1; ; number++ {
		name := fmt.Sprintf("%s%s%d", e.name, separator, number)
		// NextPart would decode quoted-printable and hide that it did.
		part, err := reader.NextRawPart()
		if errors.Is(err, io.EOF) && number > 1 {
			return nil
		}
		if errors.Is(err, io.EOF) {
			return fmt.Errorf("%s: no line begins with its boundary, --%s", e.name, boundary)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		body, err := io.ReadAll(part)
		if errors.Is(err, io.ErrUnexpectedEOF) {
			return fmt.Errorf("%s is cut off: the line --%s-- that ends the last part is missing", name, boundary)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		if err := r.entity(entity{name: name, header: part.Header, body: body, depth: e.depth + 1}); err != nil {
			return err
		}
	}
}

// decodeTransfer undoes a Content-Transfer-Encoding (RFC 2045, section 6).
func decodeTransfer(encoding string, body []byte) ([]byte, error) {
	switch strings.ToLower(strings.TrimSpace(encoding)) {
	case "", "7bit", "8bit", "binary":
		return body, nil
	case "base64":
		decoded, err := base64.StdEncoding.AppendDecode(nil, withoutSpace(body))
		if err != nil {
			return nil, errors.New("Content-Transfer-Encoding says base64, and the content is none")
		}
		return decoded, nil
	case "quoted-printable":
		decoded, err := io.ReadAll(quotedprintable.NewReader(bytes.NewReader(body)))
		if err != nil {
			return nil, errors.New("Content-Transfer-Encoding says quoted-printable, and the content is none")
		}
		return decoded, nil
	}
	return nil, fmt.Errorf("Content-Transfer-Encoding %q is unknown; there are: 7bit, 8bit, binary, base64, quoted-printable", encoding)
}
