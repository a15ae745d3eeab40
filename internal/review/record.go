// SPDX-License-Identifier: Apache-2.0

package review

import (
	"bytes"
	"encoding/json"
	"strings"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"

	"muster.dev/muster/internal/trace"
)

// The annotations that decisions leave behind.
const (
	// Annotation of requests and Events holds a decision in JSON.
	Annotation = "certificates.muster.dev/decision"
	// MachineAnnotation of requests holds the machine that one was approved for, as policy.MachineRef writes it.
	MachineAnnotation = "certificates.muster.dev/machine"
)

// record is the decision that stands in the request, if it can be believed.
func record(csr *certificatesv1.CertificateSigningRequest) (trace.Decision, bool) {
	if !Vouched(csr, Annotation) {
		return trace.Decision{}, false
	}
	return Decode(csr.Annotations[Annotation])
}

// noted is a decision as Annotation holds it. Each byte of it is stored, sent and read half a dozen times for every request, so
// a rule that passed is only its name, with what it saw behind it if that is evidence; what is in the request anyway is not said again.
type noted struct {
	Verdict trace.Verdict `json:"verdict"`
	Rule    trace.RuleID  `json:"rule,omitempty"`
	Checks  []note        `json:"checks"`
}

type note struct{ trace.Check }

const afterName = ": "

// UnmarshalJSON reads either form, a pass in the longer one too.
func (n *note) UnmarshalJSON(data []byte) error {
	var text string
	if json.Unmarshal(data, &text) != nil {
		return json.Unmarshal(data, &n.Check)
	}
	rule, detail, evidence := strings.Cut(text, afterName)
	n.Check = trace.Check{Rule: trace.RuleID(rule), Outcome: trace.Pass, Detail: detail, Evidence: evidence}
	return nil
}

// Encode writes a decision down for Annotation, without the rules that did not apply and with no detail longer than this many bytes.
func Encode(d trace.Decision, longest int) string {
	b := appendText(append(make([]byte, 0, 512), `{"verdict":`...), string(d.Verdict))
	if d.Rule != "" {
		b = appendText(append(b, `,"rule":`...), string(d.Rule))
	}
	b = append(b, `,"checks":[`...)
	first := true
	for _, c := range d.Checks {
		if c.Outcome == trace.NotApplicable {
			continue
		}
		if !first {
			b = append(b, ',')
		}
		first = false
		c.Detail, c.Hint = Clip(c.Detail, longest), Clip(c.Hint, longest)
		switch {
		case c.Outcome != trace.Pass:
			b = appendJSON(b, c)
		case c.Evidence && c.Detail != "":
			b = appendText(b, string(c.Rule)+afterName+c.Detail)
		default:
			b = appendText(b, string(c.Rule))
		}
	}
	return string(append(b, `]}`...))
}

// appendText appends a string in JSON: as it is if that may be, as nearly always.
func appendText(b []byte, s string) []byte {
	if strings.IndexFunc(s, func(r rune) bool { return r < ' ' || r > '~' || r == '"' || r == '\\' }) >= 0 {
		return appendJSON(b, s)
	}
	return append(append(append(b, '"'), s...), '"')
}

func appendJSON(b []byte, v any) []byte {
	raw, err := marshal(v)
	if err != nil {
		return append(b, `""`...) // strings only: it cannot fail
	}
	return append(b, raw...)
}

// marshal writes < and > as they are.
func marshal(v any) ([]byte, error) {
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	err := encoder.Encode(v)
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), err
}

// Clip shortens a text to a number of bytes.
func Clip(s string, most int) string {
	if len(s) <= most {
		return s
	}
	return strings.ToValidUTF8(s[:most], "") + "…"
}

// Decode reads what Encode wrote.
func Decode(text string) (trace.Decision, bool) {
	var n noted
	if text == "" || json.Unmarshal([]byte(text), &n) != nil || n.Verdict == "" {
		return trace.Decision{}, false
	}
	d := trace.Decision{Verdict: n.Verdict, Rule: n.Rule}
	for _, c := range n.Checks {
		d.Checks = append(d.Checks, c.Check)
	}
	return d, true
}

// Vouched tells whether an annotation was written through a subresource that takes the right to approve or sign, and through
// nothing else: nodes create requests with any annotations they like, but the API server notes who wrote which. A label of that
// name counts as having been written, too, which can only make this false.
func Vouched(csr *certificatesv1.CertificateSigningRequest, annotation string) bool {
	found := false
	key := []byte(`"f:` + annotation + `"`)
	for _, m := range csr.ManagedFields {
		if m.FieldsV1 == nil || !bytes.Contains(m.FieldsV1.GetRawBytes(), key) {
			continue
		}
		if m.Subresource != "approval" && m.Subresource != "status" {
			return false
		}
		found = true
	}
	return found
}

// latest is the newest Event about this very object.
func latest(csr *certificatesv1.CertificateSigningRequest, events []corev1.Event) *corev1.Event {
	var newest *corev1.Event
	for i := range events {
		e := &events[i]
		if e.InvolvedObject.Kind != "CertificateSigningRequest" || e.InvolvedObject.Name != csr.Name || e.InvolvedObject.UID != csr.UID {
			continue
		}
		if newest == nil || when(newest) < when(e) {
			newest = e
		}
	}
	return newest
}

// when is the last time that an Event happened, in nanoseconds; its time stands in one of three fields.
func when(e *corev1.Event) int64 {
	latest := max(e.LastTimestamp.UnixNano(), e.EventTime.UnixNano())
	if e.Series != nil {
		latest = max(latest, e.Series.LastObservedTime.UnixNano())
	}
	return latest
}
