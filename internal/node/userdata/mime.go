// SPDX-License-Identifier: Apache-2.0

package userdata

import (
	"bufio"
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"mime"
	"mime/quotedprintable"
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
	// headerLine begins a header or goes on with one.
	headerLine = regexp.MustCompile(`^([!-9;-~]+:|[ \t]+[!-~])`)
	// mistyped is a line that was meant to be one.
	mistyped = regexp.MustCompile(`(?i)^(mime-version|content-)`)
)

// mimeHeader splits a MIME document. Content that is not one has no header, and is not an error.
func mimeHeader(content []byte) (textproto.MIMEHeader, []byte, error) {
	content = bytes.TrimLeft(content, "\r\n")
	if bytes.HasPrefix(content, []byte("#")) || !beginsAsMIME.Match(content) && !hasType.Match(content) {
		return nil, nil, nil
	}
	header, body, err := splitHeader(content)
	if err != nil {
		return nil, nil, fmt.Errorf("begins as a MIME document, and %w", err)
	}
	if header.Get("Content-Type") == "" {
		return nil, nil, errors.New("begins as a MIME document, and its header has no Content-Type")
	}
	return header, body, nil
}

// splitHeader takes the header off a document. It ends with an empty line, or before the first line that is not a
// header, as for cloud-init (Python's email.feedparser): user data of Amazon Linux 2 often has "#!/bin/bash" right
// below the Content-Type.
func splitHeader(document []byte) (textproto.MIMEHeader, []byte, error) {
	end := 0
	for line := range bytes.Lines(document) {
		if !headerLine.Match(line) {
			break
		}
		end += len(line)
	}
	body := document[end:]
	switch line, rest, _ := bytes.Cut(body, []byte("\n")); {
	case len(bytes.TrimSpace(line)) == 0:
		body = rest
	case mistyped.Match(line):
		return nil, nil, fmt.Errorf("its header cannot be read: malformed header line: %.200s", bytes.TrimSpace(line))
	}
	text := append(bytes.Clone(document[:end]), "\r\n\r\n"...)
	header, err := textproto.NewReader(bufio.NewReader(bytes.NewReader(text))).ReadMIMEHeader()
	if err != nil {
		return nil, nil, fmt.Errorf("its header cannot be read: %w", err)
	}
	return header, body, nil
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
	separator := ", part "
	if e.depth > 0 {
		separator = "."
	}
	name := func(number int) string { return fmt.Sprintf("%s%s%d", e.name, separator, number) }
	number, last := 0, false
	var part []byte
	for line := range bytes.Lines(e.body) {
		delimits, ends := delimiter(line, boundary)
		if !delimits {
			part = append(part, line...)
			continue
		}
		if number > 0 { // the text before the first is for programs that know no MIME
			if err := r.part(entity{name: name(number), body: part, depth: e.depth + 1}); err != nil {
				return err
			}
		}
		number, part = number+1, nil
		if last = ends; last {
			break
		}
	}
	switch {
	case number == 0:
		return fmt.Errorf("%s: no line begins with its boundary, --%s", e.name, boundary)
	case !last:
		return fmt.Errorf("%s is cut off: the line --%s-- that ends the last part is missing", name(number), boundary)
	}
	return nil
}

// delimiter reports whether a line is one between parts, and whether it ends the last.
func delimiter(line []byte, boundary string) (delimits, ends bool) {
	rest, ok := bytes.CutPrefix(bytes.TrimRight(line, " \t\r\n"), []byte("--"+boundary))
	ends = string(rest) == "--"
	return ok && (len(rest) == 0 || ends), ends
}

// part takes what stands between two delimiters; the line break before the second is the delimiter's (RFC 2046, section
// 5.1.1).
func (r *reader) part(e entity) error {
	e.body = bytes.TrimSuffix(bytes.TrimSuffix(e.body, []byte("\n")), []byte("\r"))
	var err error
	if e.header, e.body, err = splitHeader(e.body); err != nil {
		return fmt.Errorf("%s: %w", e.name, err)
	}
	return r.entity(e)
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
