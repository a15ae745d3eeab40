// SPDX-License-Identifier: Apache-2.0

package identity

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"muster.dev/muster/internal/platform/strictyaml"
)

// Limits of what is read.
const (
	maxSource  = 8 << 20 // bytes; a ConfigMap has at most 1 MiB
	maxEntries = 20_000
)

// The lists that a source of mappings has. Their names are as exact as aws-iam-authenticator takes them.
const (
	mapRoles    = "mapRoles"
	mapUsers    = "mapUsers"
	mapAccounts = "mapAccounts"
)

func lists() []string { return []string{mapRoles, mapUsers, mapAccounts} }

// reader gathers mappings of one source.
type reader struct {
	source   Source
	mappings []Mapping
	problems []Problem
}

func (r *reader) problem(entry, field string, f fault, unused bool) {
	r.problems = append(r.problems, Problem{Source: r.source, Entry: entry, Field: field, Saw: f.saw, Fix: f.fix, Unused: unused})
}

// ParseAWSAuth reads the data of the ConfigMap kube-system/aws-auth. The problems are those of its form; the content of
// the entries is judged by [NewTable].
func ParseAWSAuth(data map[string]string) ([]Mapping, []Problem) {
	r := &reader{source: SourceAWSAuth}
	for _, name := range slices.Sorted(maps.Keys(data)) {
		if !slices.Contains(lists(), name) {
			r.unknownList(name)
		}
	}
	for _, name := range lists() {
		if text, ok := data[name]; ok {
			r.text(name, text)
		}
	}
	return r.mappings, r.problems
}

// ParseFile reads a mounted file: mapRoles, mapUsers and mapAccounts at its top, or under server as in the
// configuration of aws-iam-authenticator, in YAML or JSON.
func ParseFile(data []byte) ([]Mapping, []Problem) {
	r := &reader{source: SourceFile}
	if len(data) > maxSource {
		r.problem("", "", fault{fmt.Sprintf("has %d bytes", len(data)), fmt.Sprintf("at most %d are allowed", maxSource)}, true)
		return nil, r.problems
	}
	document, several := first(data)
	if several {
		r.problem("", "", severalDocuments(), true)
	}
	top, f := decode(document)
	if f != nil {
		r.problem("", "", *f, true)
		return nil, r.problems
	}
	content, ok := top.(map[string]any)
	if !ok {
		if top != nil {
			r.problem("", "", fault{"is not an object with fields", "begin it with mapRoles:, mapUsers: or mapAccounts:"}, true)
		}
		return nil, r.problems
	}
	if server, ok := content["server"].(map[string]any); ok {
		r.lists(server, func(string) {}) // everything else there is for aws-iam-authenticator's server
		return r.mappings, r.problems
	}
	r.lists(content, func(name string) {
		if name != "LastUpdatedDateTime" && name != "Version" { // which its DynamicFile has
			r.unknownList(name)
		}
	})
	return r.mappings, r.problems
}

func (r *reader) lists(content map[string]any, unknown func(name string)) {
	found := map[string]any{}
	for _, name := range slices.Sorted(maps.Keys(content)) {
		i := slices.IndexFunc(lists(), func(known string) bool { return strings.EqualFold(known, name) })
		switch {
		case i < 0:
			unknown(name)
		case found[lists()[i]] != nil:
			r.problem("", name, fault{"is there twice, in different case", "write one list " + lists()[i]}, true)
		default:
			found[lists()[i]] = content[name]
		}
	}
	for _, name := range lists() {
		r.list(name, found[name])
	}
}

func (r *reader) unknownList(name string) {
	for _, known := range lists() {
		if strings.EqualFold(name, known) {
			r.problem("", name, fault{"is not read", "write it " + known}, true)
			return
		}
	}
	r.problem("", clip(name), fault{"is not known", "the lists are " + strings.Join(lists(), ", ")}, true)
}

// text reads one list that is written as text. If it is not YAML, those of its items that are YAML by themselves are
// read.
func (r *reader) text(name, text string) {
	if len(text) > maxSource {
		r.problem("", name, fault{fmt.Sprintf("has %d bytes", len(text)), fmt.Sprintf("at most %d are allowed", maxSource)}, true)
		return
	}
	switch strings.TrimSpace(text) {
	case "", "``", `""`, "''": // which people write for nothing
		return
	}
	document, several := first([]byte(text))
	if several {
		r.problem("", name, severalDocuments(), true)
	}
	value, f := decode(document)
	if f == nil {
		r.list(name, value)
		return
	}
	items := split(string(document))
	if len(items) < 2 {
		r.problem("", name, *f, true)
		return
	}
	for i, item := range items {
		value, f := decode([]byte(item))
		list, ok := value.([]any)
		if f == nil && (!ok || len(list) != 1) {
			f = &fault{"is not one entry", "indent what belongs to it"}
		}
		if f != nil {
			r.problem(fmt.Sprintf("%s[%d]", name, i), "", *f, true)
			continue
		}
		r.item(name, i, list[0])
	}
}

// split takes a list apart at the lines that begin with the dash of its first item, without understanding what is
// between.
func split(text string) []string {
	var items []string
	dash := ""
	for line := range strings.Lines(text) {
		if dash == "" {
			trimmed := strings.TrimLeft(line, " ")
			if strings.TrimSpace(trimmed) == "" || trimmed[0] == '#' {
				continue
			}
			if !strings.HasPrefix(trimmed, "- ") {
				return nil
			}
			dash = line[:len(line)-len(trimmed)] + "- "
		}
		if strings.HasPrefix(line, dash) || strings.TrimRight(line, " \r\n") == strings.TrimRight(dash, " ") {
			items = append(items, "")
		}
		items[len(items)-1] += line
	}
	return items
}

// first is the first document of a text, and whether there are others, which nobody reads.
func first(text []byte) (document []byte, several bool) {
	documents, err := strictyaml.Documents(text)
	if err != nil || len(documents) == 0 {
		return text, false
	}
	return documents[0], len(documents) > 1
}

func severalDocuments() fault {
	return fault{"has several documents, of which the first is read only", "remove the lines of three dashes"}
}

// decode reads one YAML document. Numbers are kept as they are.
func decode(data []byte) (any, *fault) {
	const fix = "correct it; yamllint shows where"
	asJSON, problems := strictyaml.ToJSON(data)
	if len(problems) > 0 {
		return nil, &fault{"is not YAML: " + clip(strings.Join(problems, "; ")), fix}
	}
	decoder := json.NewDecoder(bytes.NewReader(asJSON))
	decoder.UseNumber()
	var value any
	if err := decoder.Decode(&value); err != nil {
		return nil, &fault{"is not YAML: " + clip(err.Error()), fix}
	}
	return value, nil
}
