// SPDX-License-Identifier: Apache-2.0

package csrview

import (
	"bytes"
	"encoding/json"
	"strings"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"

	"muster.dev/muster/internal/platform/decision"
)

const (
	// Annotation of Events holds a decision in JSON.
	Annotation = "certificates.muster.dev/decision"
	// DecidedCondition of requests holds the decision, and the machine that it was made about, in its message: see
	// Condition.
	DecidedCondition certificatesv1.RequestConditionType = "certificates.muster.dev/Decided"
)

// Condition is how a decision stands in the request that it is about: in the same write as the approval, the denial or
// the certificate, so that it can neither be missing nor be of another moment. The machine is as policy.MachineRef
// writes it, "" if nobody knows.
//
// Conditions are written only by users that may approve or sign for the signer of the request, which the API server
// asks for each write of them (upstream's admission plugins CertificateApproval and CertificateSigning); of a new
// request it clears them. An annotation can be written by the requester, and its writer is noted of some requests only:
// not of those of kubelets, which have no metadata but a name when they are made.
func Condition(d decision.Decision, machine string, longest int) certificatesv1.CertificateSigningRequestCondition {
	return certificatesv1.CertificateSigningRequestCondition{
		Type: DecidedCondition, Status: corev1.ConditionTrue, Reason: string(d.Verdict), Message: encode(d, machine, longest),
	}
}

// Decided is the decision that stands in a request and the machine that it was made about; false if there is none, or
// none that is whole.
func Decided(csr *certificatesv1.CertificateSigningRequest) (d decision.Decision, machine string, ok bool) {
	return decode(decided(csr))
}

// DecidedAbout is the machine that the decision which stands in a request was made about, and its verdict, as Decided
// returns them; the rules, which are most of the work of reading it, are left out.
func DecidedAbout(csr *certificatesv1.CertificateSigningRequest) (machine string, v decision.Verdict) {
	var n struct {
		Verdict decision.Verdict `json:"verdict"`
		Machine string           `json:"machine"`
	}
	if text := decided(csr); text == "" || json.Unmarshal([]byte(text), &n) != nil {
		return "", ""
	}
	return n.Machine, n.Verdict
}

// decided is the text of the condition, "" if there is none that counts.
func decided(csr *certificatesv1.CertificateSigningRequest) string {
	found := ""
	for _, c := range csr.Status.Conditions {
		switch {
		case c.Type != DecidedCondition:
		case found != "" || c.Status != corev1.ConditionTrue:
			return ""
		default:
			found = c.Message
		}
	}
	return found
}

// noted is a decision as it is written down. Each byte of it is stored, sent and read half a dozen times for every
// request, so a rule that passed is only its name, with what it saw behind it if that is evidence; contents of the
// request are not repeated.
type noted struct {
	Verdict decision.Verdict `json:"verdict"`
	Rule    decision.RuleID  `json:"rule,omitempty"`
	Machine string           `json:"machine,omitempty"`
	Checks  []note           `json:"checks"`
}

type note struct{ decision.Check }

const afterName = ": "

// UnmarshalJSON reads either form, a pass in the longer one too.
func (n *note) UnmarshalJSON(data []byte) error {
	var text string
	if json.Unmarshal(data, &text) != nil {
		return json.Unmarshal(data, &n.Check)
	}
	rule, detail, evidence := strings.Cut(text, afterName)
	n.Check = decision.Check{Rule: decision.RuleID(rule), Outcome: decision.Pass, Detail: detail, Evidence: evidence}
	return nil
}

// Encode writes a decision down for Annotation, without the rules that did not apply and with no detail longer than
// this many bytes.
func Encode(d decision.Decision, longest int) string { return encode(d, "", longest) }

func encode(d decision.Decision, machine string, longest int) string {
	b := appendText(append(make([]byte, 0, 512), `{"verdict":`...), string(d.Verdict))
	if d.Rule != "" {
		b = appendText(append(b, `,"rule":`...), string(d.Rule))
	}
	if machine != "" {
		b = appendText(append(b, `,"machine":`...), machine)
	}
	b = append(b, `,"checks":[`...)
	first := true
	for _, c := range d.Checks {
		if c.Outcome == decision.NotApplicable {
			continue
		}
		if !first {
			b = append(b, ',')
		}
		first = false
		c.Detail, c.Hint = Clip(c.Detail, longest), Clip(c.Hint, longest)
		switch {
		case c.Outcome != decision.Pass:
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
func Decode(text string) (decision.Decision, bool) {
	d, _, ok := decode(text)
	return d, ok
}

func decode(text string) (d decision.Decision, machine string, ok bool) {
	var n noted
	if text == "" || json.Unmarshal([]byte(text), &n) != nil || n.Verdict == "" {
		return decision.Decision{}, "", false
	}
	d = decision.Decision{Verdict: n.Verdict, Rule: n.Rule}
	for _, c := range n.Checks {
		d.Checks = append(d.Checks, c.Check)
	}
	return d, n.Machine, true
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
