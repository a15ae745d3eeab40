// SPDX-License-Identifier: Apache-2.0

package auditlog

import (
	"bytes"
	"encoding/json"
	"strings"
)

const (
	// longLine is more than an event takes that nobody has stretched. A CSR with its answer has some 8 KiB.
	longLine = 64 << 10
	// longText and longList are how much of a text and of a list a long line keeps.
	longText, longList = 4 << 10, 32

	annotationTruncated = "audit.k8s.io/truncated" // as upstream's truncating backend has it
)

// shorten returns a long line without its objects, with the beginnings of its texts and lists. A requester chooses URI,
// user agent, names and objects, of a megabyte and more: some hundred requests would push everything else out of the
// log.
func shorten(line []byte) []byte {
	var fields map[string]any
	decoder := json.NewDecoder(bytes.NewReader(line))
	decoder.UseNumber()
	if err := decoder.Decode(&fields); err != nil {
		return line // it was decoded before
	}
	delete(fields, "requestObject")
	delete(fields, "responseObject")
	cut(fields)
	fields["level"] = "Metadata"
	annotations, ok := fields["annotations"].(map[string]any)
	if !ok {
		annotations = map[string]any{}
	}
	annotations[annotationTruncated] = "true"
	fields["annotations"] = annotations
	var short bytes.Buffer
	encoder := json.NewEncoder(&short)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(fields); err != nil {
		return line // never: decoded fields can be encoded
	}
	return bytes.TrimSuffix(short.Bytes(), []byte("\n"))
}

// cut shortens the texts and lists of a value, at any depth.
func cut(value any) any {
	switch v := value.(type) {
	case string:
		if len(v) > longText {
			return strings.ToValidUTF8(v[:longText], "") + "…"
		}
	case []any:
		v = v[:min(len(v), longList)]
		for i := range v {
			v[i] = cut(v[i])
		}
		return v
	case map[string]any:
		for key, one := range v {
			v[key] = cut(one)
		}
	}
	return value
}
