// SPDX-License-Identifier: Apache-2.0

// Package strictyaml reads YAML that people write by hand: what is not known is an error with its path, a key twice is one, and
// all that is wrong is told at once, in words that speak of YAML.
package strictyaml

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	kjson "sigs.k8s.io/json"
	"sigs.k8s.io/yaml"
)

// Documents returns the documents of a file that hold more than comments.
func Documents(data []byte) ([][]byte, error) {
	var parts [][]byte
	reader := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(data)))
	for {
		part, err := reader.Read()
		if errors.Is(err, io.EOF) {
			return parts, nil
		}
		if err != nil {
			return nil, err
		}
		for line := range bytes.Lines(part) {
			line = bytes.TrimSpace(line)
			if len(line) > 0 && line[0] != '#' && !bytes.Equal(line, []byte("---")) {
				parts = append(parts, part)
				break
			}
		}
	}
}

// ToJSON makes JSON of one document, or says what is wrong with it, a line each.
func ToJSON(document []byte) (data []byte, problems []string) {
	data, err := yaml.YAMLToJSONStrict(document)
	if err != nil {
		return nil, yamlErrors(err)
	}
	return data, nil
}

// FromJSON decodes into a value and says what is wrong, a line each with the path of the field. What could be read is read, unless
// ok is false.
func FromJSON(data []byte, into any) (problems []string, ok bool) {
	unknown, err := kjson.UnmarshalStrict(data, into)
	for _, problem := range unknown {
		problems = append(problems, problem.Error())
	}
	if err != nil {
		return append(problems, typeError(data, err)), false
	}
	return problems, true
}

// typeError says in YAML's words what encoding/json says in Go's.
func typeError(data []byte, err error) string {
	var wrong *json.UnmarshalTypeError
	if !errors.As(err, &wrong) {
		return err.Error()
	}
	want := wrong.Type.Kind().String()
	switch {
	case strings.HasPrefix(want, "int"), strings.HasPrefix(want, "uint"):
		want = "a whole number"
	case want == "bool":
		want = "true or false"
	case want == "string":
		want = "text, in quotes if it looks like something else"
	case want == "slice":
		want = "a list"
	case want == "map", want == "struct":
		want = "an object with fields"
	}
	path := wrong.Field
	if exact, keys := pathAt(data, wrong.Offset); leadsThrough(keys, path) {
		path = exact
	}
	if path == "" {
		path = "<document>"
	}
	return fmt.Sprintf("%s: Invalid value: %s: must be %s", path, wrong.Value, want)
}

// leadsThrough tells whether the fields of a path are among the keys, in their order. If not, a type decoded itself, and the offset is not
// one of the whole document.
func leadsThrough(keys []string, path string) bool {
	if path == "" {
		return true
	}
	fields := strings.Split(path, ".")
	for _, key := range keys {
		if len(fields) > 0 && key == fields[0] {
			fields = fields[1:]
		}
	}
	return len(fields) == 0
}

// yamlErrors takes the lines out of the errors of the YAML library, which reports several in one.
func yamlErrors(err error) []string {
	text := strings.TrimPrefix(err.Error(), "error converting YAML to JSON: ")
	text = strings.TrimPrefix(strings.TrimPrefix(text, "yaml: "), "unmarshal errors:")
	var lines []string
	for line := range strings.SplitSeq(text, "\n") {
		if line = strings.TrimSpace(line); line != "" {
			lines = append(lines, line)
		}
	}
	return lines
}
