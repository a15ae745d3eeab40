// SPDX-License-Identifier: Apache-2.0

package cause

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// ID is the identifier of a cause, such as M-IAM-04.
type ID string

// Number is the number in the identifier, which no other cause has; 0 if it is not an identifier.
func (id ID) Number() int {
	n, err := strconv.Atoi(string(id[strings.LastIndexByte(string(id), '-')+1:]))
	if err != nil {
		return 0
	}
	return n
}

// State says whether Muster names a cause.
type State string

// The states of a cause.
const (
	// Named is a cause that muster explain finds by the signals of its file.
	Named State = "named"
	// Impossible is a cause that cannot be on Muster; Why says what prevents it.
	Impossible State = "impossible"
	// Later is a cause that is possible and that muster explain does not name yet; Why says what is missing.
	Later State = "later"
)

// Source is where a piece of evidence comes from.
type Source string

// The sources of evidence.
const (
	FromMachine       Source = "machine"       // a condition of the Machine; the code is TYPE/REASON
	FromReport        Source = "report"        // the machine's own report; the code is the reason of package bootreport
	FromGroup         Source = "node-group"    // a condition of the NodeGroup, or the reason why its repairs are held; the code is TYPE/REASON
	FromCluster       Source = "cluster"       // a condition of the Cluster; the code is TYPE/REASON
	FromUpdate        Source = "update"        // an error of an Update; the code is EKS's
	FromNode          Source = "node"          // a condition of the Node; the code is TYPE/REASON, or Taint/KEY for a taint
	FromPod           Source = "pod"           // a condition of the pod, the code is TYPE/REASON, or a container of it, Waiting/REASON, Terminated/REASON or Restarts/Ended
	FromClaim         Source = "volume"        // a PersistentVolumeClaim; the code is Phase/PHASE
	FromService       Source = "service"       // a Service; the code is LoadBalancer/NoAddress or Endpoints/NoneReady
	FromStack         Source = "stack"         // an event of a stack of CloudFormation about one of its resources; the code is STATUS/TYPE
	FromIdentity      Source = "identity"      // the IAM identity of a pod; the code is WAY/WHY, as package podidentity has them
	FromEvent         Source = "event"         // an Event about a pod, claim or Service; the code is its reason
	FromRequest       Source = "csr"           // the decision about a certificate signing request; the code is VERDICT/RULE
	FromKubelet       Source = "kubelet"       // a line of the kubelet's log
	FromAudit         Source = "audit"         // a refused request in the audit log; the code is STATUS/RESOURCE, such as 403/nodes
	FromConfiguration Source = "configuration" // of a cluster: webhooks, APIServices, aws-auth, bindings, leaders; the code is WHAT/HOW
	FromUnit          Source = "unit"          // a unit of systemd that is not as it should be, on its node; the code is UNIT/STATE, the text its last words
	FromHost          Source = "host"          // a look at a node, on the node itself; the code is WHAT/HOW, such as Endpoint/Refused
	FromAuthenticator Source = "authenticator" // a refused token in the authenticator's log; the code is the rule
)

// sources are all sources.
func sources() []Source {
	return []Source{FromMachine, FromReport, FromGroup, FromCluster, FromUpdate, FromNode, FromPod, FromClaim, FromService, FromStack, FromIdentity, FromEvent, FromRequest, FromKubelet, FromConfiguration, FromUnit, FromHost, FromAudit, FromAuthenticator}
}

// Passing reports whether evidence of the source is about a moment: a line that was written once. All other evidence is
// about now.
func (s Source) Passing() bool { return s == FromKubelet || s == FromAudit || s == FromAuthenticator }

// Signal is evidence by which a cause is known. Evidence has to match every field that is set.
type Signal struct {
	Source Source `json:"source"`
	// Code is compared as a whole. A star at its end stands for any rest.
	Code string `json:"code,omitempty"`
	// Text are fragments that all occur in the evidence's text.
	Text []string `json:"text,omitempty"`
	// Without are fragments that do not occur in the text: it is about something else where one does, with the same words.
	Without []string `json:"without,omitempty"`
}

// Matches reports whether evidence with a code and a text is what the signal describes.
func (s Signal) Matches(source Source, code, text string) bool {
	if s.Source == FromKubelet && source == FromUnit && strings.HasPrefix(code, kubeletUnit) {
		source, code = FromKubelet, "" // the last words of a kubelet that ended are lines of its log
	}
	if s.Source != source {
		return false
	}
	if prefix, open := strings.CutSuffix(s.Code, "*"); s.Code != "" && (open && !strings.HasPrefix(code, prefix) || !open && code != s.Code) {
		return false
	}
	in := func(fragment string) bool { return strings.Contains(text, fragment) }
	return !slices.ContainsFunc(s.Without, in) && !slices.ContainsFunc(s.Text, func(fragment string) bool { return !in(fragment) })
}

// kubeletUnit begins the codes of the kubelet's unit.
const kubeletUnit = "kubelet.service/"

// Upstream is a message of a program that is not Muster's.
type Upstream struct {
	// Module of Go that the message is in, such as k8s.io/kubernetes; std is Go's own library.
	Module string `json:"module"`
	// File of the module.
	File string `json:"file"`
	// Text is a fragment of the file that the message is made from.
	Text string `json:"text"`
}

// Cause is one entry of the catalogue.
type Cause struct {
	ID ID `json:"id"`
	// Title is the cause in a few words, for tables.
	Title string `json:"title"`
	// Step that the cause keeps a machine from; empty for a cause that is about something else.
	Step Step `json:"step,omitempty"`
	// Sentence says what is wrong.
	Sentence string `json:"sentence,omitempty"`
	// Fix is what to do: a command or an edit. See [Placeholders].
	Fix string `json:"fix,omitempty"`
	// FixOnNode is what to do on a node that need not be a machine of Muster's, where that is something else than Fix.
	FixOnNode string `json:"fixOnNode,omitempty"`
	// Writer is the package that writes the identifier, below internal/; empty if none does.
	Writer string `json:"writer,omitempty"`
	// Signals by which the cause is known, beside its identifier. A single signal is enough.
	Signals []Signal `json:"signals,omitempty"`
	// PatienceSeconds is how long the object has to have stood still before the evidence counts. Programs that start
	// together refuse each other for a moment.
	PatienceSeconds int `json:"patienceSeconds,omitempty"`
	// Upstream are the messages that people see of the cause.
	Upstream []Upstream `json:"upstream,omitempty"`
	// Excludes are causes that are not told where this one is found, though their evidence is there.
	Excludes []ID `json:"excludes,omitempty"`
	// Implies are causes that are consequences of this one where both are found.
	Implies []ID `json:"implies,omitempty"`

	State State `json:"state"`
	// Why the cause is impossible, or not named yet.
	Why string `json:"why,omitempty"`
	// Injected is the story that has the cause for real and sees it named, or the test of a real component, as
	// PACKAGE.TEST; empty if none does.
	Injected string `json:"injected,omitempty"`
	// NotInjected is why nothing has a named cause for real.
	NotInjected string `json:"notInjected,omitempty"`
}

// InStory reports whether a story has the cause for real, and not the test of a component.
func (c Cause) InStory() bool { return c.Injected != "" && !strings.Contains(c.Injected, ".") }

// Patience is how long an object has to have stood still before evidence of the cause counts.
func (c Cause) Patience() time.Duration { return time.Duration(c.PatienceSeconds) * time.Second }

// FixFor returns what to do: on any node, or from outside for what is Muster's.
func (c Cause) FixFor(onNode bool) string {
	if onNode {
		return cmp.Or(c.FixOnNode, c.Fix)
	}
	return c.Fix
}

// Matches reports whether evidence shows the cause by one of its signals.
func (c Cause) Matches(source Source, code, text string) bool {
	return c.State == Named && slices.ContainsFunc(c.Signals, func(s Signal) bool { return s.Matches(source, code, text) })
}
