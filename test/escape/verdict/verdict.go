// SPDX-License-Identifier: Apache-2.0

// Package verdict is the report of test/escape: one line of JSON for each attack and right. The program writes the
// lines, and whoever started the program on a machine reads them.
package verdict

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// Outcome says how an attack ended.
type Outcome string

// The outcomes. Only Held and NotHere keep the host safe.
const (
	// Out means that the attack read or changed something of the host.
	Out Outcome = "out"
	// Held means that the kernel or the machine refused a step without which the attack is worth nothing.
	Held Outcome = "held"
	// NotHere means that the kernel or the host lacks what the attack needs.
	NotHere Outcome = "not here"
	// Unclear means that the attack ended without a verdict: it crashed or hung. It counts as Out, since nobody knows
	// what it did.
	Unclear Outcome = "unclear"
)

// Verdict is what came of one attack with one set of rights.
type Verdict struct {
	Attack  string  `json:"attack"`
	Rights  string  `json:"rights"`
	Outcome Outcome `json:"outcome"`
	// Why is the evidence of Out, the step and the refusal of Held, and what was missing for NotHere.
	Why string `json:"why"`
	// Token is the secret of the host that the attack read; empty if its evidence is another one.
	Token string `json:"token,omitempty"`
	// Millis is how long the attack took, in milliseconds.
	Millis int64 `json:"millis"`
}

// Safe reports whether the outcome leaves the host untouched.
func (o Outcome) Safe() bool { return o == Held || o == NotHere }

func (o Outcome) known() bool { return o.Safe() || o == Out || o == Unclear }

// Write writes verdicts, one a line.
func Write(to io.Writer, all ...Verdict) error {
	encoder := json.NewEncoder(to)
	for _, v := range all {
		if err := encoder.Encode(v); err != nil {
			return fmt.Errorf("writing verdict on %s: %w", v.Attack, err)
		}
	}
	return nil
}

// Read reads verdicts until the end. A line that is not a whole verdict is an error: a report that was cut short, or
// that somebody on the machine wrote by hand, must not pass for a good one.
func Read(from io.Reader) ([]Verdict, error) {
	decoder := json.NewDecoder(from)
	decoder.DisallowUnknownFields()
	var all []Verdict
	for {
		var v Verdict
		err := decoder.Decode(&v)
		if errors.Is(err, io.EOF) {
			return all, nil
		}
		if err != nil {
			return nil, fmt.Errorf("reading verdict %d: %w", len(all)+1, err)
		}
		switch {
		case v.Attack == "" || v.Rights == "":
			return nil, fmt.Errorf("reading verdict %d: attack %q with rights %q: both must have a name", len(all)+1, v.Attack, v.Rights)
		case !v.Outcome.known():
			return nil, fmt.Errorf("reading verdict %d: outcome %q of %s: must be %q, %q, %q or %q", len(all)+1, v.Outcome, v.Attack, Out, Held, NotHere, Unclear)
		case v.Why == "":
			return nil, fmt.Errorf("reading verdict %d: %s is %q without a reason", len(all)+1, v.Attack, v.Outcome)
		}
		all = append(all, v)
	}
}

// ReadOne reads what one attack reported, which must be exactly one verdict.
func ReadOne(raw []byte) (Verdict, error) {
	all, err := Read(bytes.NewReader(raw))
	if err != nil {
		return Verdict{}, err
	}
	if len(all) != 1 {
		return Verdict{}, fmt.Errorf("reading the verdict of an attack: found %d verdicts, want one", len(all))
	}
	return all[0], nil
}
