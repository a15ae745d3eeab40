// SPDX-License-Identifier: Apache-2.0

package iampolicy

import (
	"bytes"
	"encoding/json"

	"muster.dev/muster/internal/iam/iam"
)

// words are written as one text when there is one, as AWS does.
type words []string

// MarshalJSON writes a text or a list.
func (w words) MarshalJSON() ([]byte, error) {
	if len(w) == 1 {
		return plainJSON(w[0])
	}
	return plainJSON([]string(w))
}

type written struct {
	Version   string `json:",omitempty"`
	ID        string `json:"Id,omitempty"`
	Statement []writtenStatement
}

type writtenStatement struct {
	Sid         string `json:",omitempty"`
	Effect      Effect
	Principal   any                         `json:",omitempty"`
	Action      words                       `json:",omitempty"`
	NotAction   words                       `json:",omitempty"`
	Resource    words                       `json:",omitempty"`
	NotResource words                       `json:",omitempty"`
	Condition   map[string]map[string]words `json:",omitempty"`
}

// Text writes the document as JSON. Parse reads it back to the same meaning; white space, the order of elements and
// whether a single value stood in a list are not kept.
func (d Document) Text() (string, error) {
	w := written{Version: d.Version, ID: d.ID}
	for _, s := range d.Statements {
		ws := writtenStatement{Sid: s.SID, Effect: s.Effect, Action: s.Actions, NotAction: s.NotActions, Resource: s.Resources, NotResource: s.NotResources}
		if len(s.Principals) > 0 {
			ws.Principal = principals(s.Principals)
		}
		for _, c := range s.Conditions {
			if ws.Condition == nil {
				ws.Condition = map[string]map[string]words{}
			}
			if ws.Condition[c.Operator] == nil {
				ws.Condition[c.Operator] = map[string]words{}
			}
			ws.Condition[c.Operator][c.Key] = c.Values
		}
		w.Statement = append(w.Statement, ws)
	}
	raw, err := plainJSON(w)
	return string(raw), err
}

// principals are a text or an object, as they were written.
func principals(all []Principal) any {
	if len(all) == 1 && all[0] == (Principal{Kind: Anyone}) {
		return "*"
	}
	by := map[string]words{}
	for _, p := range all {
		kind, value := "AWS", p.Value
		switch p.Kind {
		case Service:
			kind = "Service"
		case Federated:
			kind = "Federated"
		case Account:
			value = iam.RootARN(p.Value).String()
		case Anyone, ByID, ByARN:
		}
		by[kind] = append(by[kind], value)
	}
	return by
}

// plainJSON leaves < > and & as they are.
func plainJSON(value any) ([]byte, error) {
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(value); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(out.Bytes(), []byte("\n")), nil
}
