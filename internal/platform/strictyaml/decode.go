// SPDX-License-Identifier: Apache-2.0

// Package strictyaml reads YAML that people write by hand: an unknown field is an error with its path and line, a key
// twice is one, and all problems are reported at once, in words that speak of YAML.
package strictyaml

import (
	"bytes"
	"encoding/json"
	"reflect"
	"regexp"

	kjson "sigs.k8s.io/json"
	"sigs.k8s.io/yaml"
)

// ToJSON makes JSON of one document, or says what is wrong with it, a line each.
func ToJSON(document []byte) (data []byte, problems []string) {
	d := &Document{Text: document}
	data, wrong := d.JSON()
	if wrong != nil {
		return nil, d.Lines(wrong)
	}
	return data, nil
}

// JSON makes JSON of the document. A key twice is wrong, and the rest can be looked at all the same; the data is nil if
// it is not YAML.
func (d *Document) JSON() (data []byte, wrong []Wrong) {
	data, err := yaml.YAMLToJSONStrict(d.Text)
	if err == nil {
		return data, nil
	}
	wrong = d.yamlErrors(err)
	if data, err = yaml.YAMLToJSON(d.Text); err != nil {
		return nil, wrong
	}
	return data, wrong
}

// FromJSON decodes into a value and says what is wrong, a line each with the path of the field. All readable fields are
// read, unless ok is false.
func FromJSON(data []byte, into any) (problems []string, ok bool) {
	wrong, ok := Decode(data, into)
	for _, w := range wrong {
		problems = append(problems, w.Text)
		ok = ok && !w.spoils
	}
	return problems, ok
}

// unknownField is what the decoder says of one.
var unknownField = regexp.MustCompile(`^unknown field "(.*)"$`)

// Decode decodes JSON into a value and says all that is wrong. All readable fields are read, unless ok is false.
func Decode(data []byte, into any) (wrong []Wrong, ok bool) {
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.UseNumber()
	var tree any
	if err := decoder.Decode(&tree); err != nil {
		return []Wrong{{Text: err.Error()}}, false
	}
	wrong, ok = mistyped(tree, reflect.TypeOf(into), "")
	if !ok {
		return wrong, false
	}
	if len(wrong) > 0 {
		rest, err := json.Marshal(tree)
		if err != nil {
			return append(wrong, Wrong{Text: err.Error()}), false
		}
		data = rest
	}
	unknown, err := kjson.UnmarshalStrict(data, into)
	for _, u := range unknown {
		w := Wrong{Text: u.Error()}
		if found := unknownField.FindStringSubmatch(w.Text); found != nil {
			w.Path = found[1]
		}
		wrong = append(wrong, w)
	}
	if err != nil {
		return append(wrong, Wrong{Text: err.Error()}), false
	}
	return wrong, true
}
