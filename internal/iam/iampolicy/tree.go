// SPDX-License-Identifier: Apache-2.0

package iampolicy

import (
	"encoding/json"
	"errors"
	"io"
	"strconv"
	"strings"
)

// maxDepth is more than any document needs: document, statement, condition, operator, values.
const maxDepth = 8

type nodeKind int

const (
	objectNode nodeKind = iota + 1
	listNode
	textNode
	boolNode
	numberNode
	nullNode
)

// node is a JSON value that keeps what encoding/json's maps lose: the order of fields and whether one came twice.
type node struct {
	kind   nodeKind
	path   string
	text   string // of text, numbers and booleans
	items  []node
	fields []field
}

type field struct {
	name  string
	value node
}

func (n node) wrong(why string) error { return &Malformed{Path: n.path, Why: why} }

// readTree reads one JSON value and nothing behind it.
func readTree(text string) (node, error) {
	decoder := json.NewDecoder(strings.NewReader(text))
	decoder.UseNumber()
	root, err := readNode(decoder, "$", 0)
	if err != nil {
		if located := (*Malformed)(nil); errors.As(err, &located) {
			return node{}, err
		}
		return node{}, &Malformed{Path: "$", Why: "this is not JSON: " + err.Error()}
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return node{}, &Malformed{Path: "$", Why: "there is something behind the end of the document"}
	}
	return root, nil
}

func readNode(decoder *json.Decoder, path string, depth int) (node, error) {
	token, err := decoder.Token()
	if err != nil {
		if errors.Is(err, io.EOF) {
			err = io.ErrUnexpectedEOF
		}
		return node{}, err
	}
	n := node{path: path}
	switch value := token.(type) {
	case json.Delim:
		if depth >= maxDepth {
			return node{}, n.wrong("it is nested deeper than any policy is")
		}
		if value == '{' {
			return readObject(decoder, n, depth)
		}
		return readList(decoder, n, depth)
	case string:
		n.kind, n.text = textNode, value
		if strings.ContainsFunc(value, func(r rune) bool { return r < 0x20 || r > 0xff || r == 0x7f }) {
			return node{}, n.wrong("the text has a character outside U+0020 to U+00FF")
		}
	case bool:
		n.kind, n.text = boolNode, strconv.FormatBool(value)
	case json.Number:
		n.kind, n.text = numberNode, value.String()
	default:
		n.kind = nullNode
	}
	return n, nil
}

func readObject(decoder *json.Decoder, n node, depth int) (node, error) {
	n.kind = objectNode
	seen := map[string]bool{}
	for decoder.More() {
		token, err := decoder.Token()
		if err != nil {
			return node{}, err
		}
		name, _ := token.(string) // the decoder takes no other names
		if seen[name] {
			return node{}, n.wrong("the element " + strconv.Quote(name) + " comes twice")
		}
		seen[name] = true
		value, err := readNode(decoder, n.path+"."+name, depth+1)
		if err != nil {
			return node{}, err
		}
		n.fields = append(n.fields, field{name, value})
	}
	_, err := decoder.Token()
	return n, err
}

func readList(decoder *json.Decoder, n node, depth int) (node, error) {
	n.kind = listNode
	for decoder.More() {
		value, err := readNode(decoder, n.path+"["+strconv.Itoa(len(n.items))+"]", depth+1)
		if err != nil {
			return node{}, err
		}
		n.items = append(n.items, value)
	}
	_, err := decoder.Token()
	return n, err
}

// texts reads a text or a list of texts. An empty list is refused: nobody can say what it would mean.
func (n node) texts() ([]node, error) {
	items := []node{n}
	if n.kind == listNode {
		items = n.items
	}
	if len(items) == 0 {
		return nil, n.wrong("the list is empty")
	}
	for _, item := range items {
		if item.kind != textNode {
			return nil, item.wrong("it must be a text or a list of texts")
		}
		if item.text == "" {
			return nil, item.wrong("the text is empty")
		}
	}
	return items, nil
}
