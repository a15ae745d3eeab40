// SPDX-License-Identifier: Apache-2.0

package diagnosis_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/certificates/policy"
	"muster.dev/muster/internal/explain/cause"
	"muster.dev/muster/internal/explain/diagnosis"
)

var noon = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

func catalogue(t *testing.T) cause.Catalogue {
	t.Helper()
	c, err := cause.Default()
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// joining are the facts of a machine that was launched some time before noon and has come as far as a step.
func joining(age time.Duration, last cause.Step) diagnosis.Facts {
	f := diagnosis.Facts{
		Kind: "machine", Name: "i-1", ByRole: true, Since: noon.Add(-age), Patience: 3 * time.Minute,
		Names: map[string]string{"$MACHINE": "i-1", "$GROUP": "default", "$CLUSTER": "home", "$NODE": "node-1", "$NAME": "i-1"},
		Steps: map[cause.Step]time.Time{},
	}
	for i, step := range cause.Steps() {
		if step.Order() <= last.Order() && slices.Contains(v1alpha1.JoinSteps(), v1alpha1.JoinStep(step)) && !step.OfClient() {
			f.Steps[step] = noon.Add(-age + time.Duration(i)*time.Second)
		}
	}
	return f
}

// was are the facts of a machine that was Ready an hour ago, and is not any more.
func was() diagnosis.Facts { return joining(time.Hour, cause.Ready) }

// line is a line of the kubelet's log, written some time before noon.
func line(ago time.Duration, text string) diagnosis.Evidence {
	return diagnosis.Evidence{Source: cause.FromKubelet, Object: "machine/i-1", Time: noon.Add(-ago), Text: text, Trouble: strings.HasPrefix(text, "E")}
}

// causes are the identifiers in a report.
func causes(r diagnosis.Report) []cause.ID {
	var ids []cause.ID
	for _, f := range r.Causes {
		ids = append(ids, f.Cause)
	}
	return ids
}

const (
	unregistered = `E1120 11:59:50.000000     100 kubelet_node_status.go:107] "Unable to register node with API server" err="Post \"https://172.31.0.4/api/v1/nodes\": `
	noHost       = unregistered + `dial tcp: lookup nope.invalid on 172.31.0.2:53: no such host"`
	refusedDial  = unregistered + `dial tcp 172.31.0.4:443: connect: connection refused"`
	badProxy     = unregistered + `proxyconnect tcp: dial tcp 127.0.0.1:3128: connect: connection refused"`
	unauthorized = `E1120 11:59:50.000000     100 kubelet_node_status.go:107] "Unable to register node with API server" err="Unauthorized" node="node-1"`
	awayHook     = `E1120 11:59:50.000000     100 kubelet_node_status.go:107] "Unable to register node with API server" err="Internal error occurred: ` + hookSays + `dial tcp 10.100.3.4:443: `
	badHook      = `E1120 11:59:50.000000     100 kubelet_node_status.go:107] "Unable to register node with API server" err="Internal error occurred: ` + hookSays + `tls: failed to verify certificate: x509: certificate signed by unknown authority"`
	hookSays     = `failed calling webhook \"a.example.org\": failed to call webhook: Post \"https://a.default.svc:443/?timeout=1s\": `
	foreignProxy = unregistered + `proxyconnect tcp: tls: failed to verify certificate: x509: certificate signed by unknown authority"`
	noNames      = unregistered + `dial tcp: lookup api.example.org on 172.31.0.2:53: `
	noMetadata   = `get credentials: failed to refresh cached credentials, no EC2 IMDS role found, operation error ec2imds: GetMetadata, `
	badAuthority = unregistered + `tls: failed to verify certificate: x509: certificate signed by unknown authority"`
)

// noNetwork is a Node that has just been registered, or whose machine has just booted.
var noNetwork = diagnosis.Evidence{Source: cause.FromNode, Object: "node/node-1", Code: "Ready/KubeletNotReady", Text: "container runtime network not ready: NetworkReady=false"}

// since is evidence that has been so for a time.
func since(ago time.Duration, e diagnosis.Evidence) diagnosis.Evidence {
	e.Time = noon.Add(-ago)
	return e
}

// audited is a request of the machine's node that was refused a second ago.
func audited(code, text string) diagnosis.Evidence {
	return since(time.Second, diagnosis.Evidence{Source: cause.FromAudit, Object: "x/y", Code: code, Text: text})
}

func TestDecide(t *testing.T) {
	t.Parallel()
	notMapped := diagnosis.Evidence{Source: cause.FromMachine, Object: "machine/i-1", Time: noon.Add(-time.Second), Code: "Identity/Refused", Cause: "M-IAM-01", Trouble: true}
	strange := diagnosis.Evidence{Source: cause.FromMachine, Object: "machine/i-1", Code: "Ready/NoProvider", Text: "there is no provider", Trouble: true}
	silent := diagnosis.Evidence{Source: cause.FromNode, Object: "node/node-1", Code: "Ready/NodeStatusUnknown", Text: "Kubelet stopped posting node status."}
	healthy := joining(time.Hour, cause.Ready)
	healthy.Healthy = true
	stopped := joining(time.Hour, cause.Ready)
	stopped.Idle = true
	for name, test := range map[string]struct {
		facts    diagnosis.Facts
		evidence []diagnosis.Evidence
		verdict  diagnosis.Verdict
		causes   string
	}{
		"a machine that is Ready":                {healthy, nil, diagnosis.Healthy, "[]"},
		"one that is Ready, and its log is not":  {healthy, []diagnosis.Evidence{line(time.Second, noHost)}, diagnosis.Healthy, "[]"},
		"one that is stopped":                    {stopped, nil, diagnosis.Healthy, "[]"},
		"one that was launched just now":         {joining(5*time.Second, cause.Launched), nil, diagnosis.OnItsWay, "[]"},
		"one that is late":                       {joining(time.Hour, cause.Launched), nil, diagnosis.NotKnown, "[]"},
		"one that is refused":                    {joining(5*time.Second, cause.Launched), []diagnosis.Evidence{notMapped}, diagnosis.Found, "[M-IAM-01]"},
		"refused without an identifier":          {joining(time.Hour, cause.Launched), []diagnosis.Evidence{line(time.Second, unauthorized)}, diagnosis.NotKnown, "[]"},
		"what nobody knows":                      {joining(5*time.Second, cause.Launched), []diagnosis.Evidence{strange}, diagnosis.NotKnown, "[]"},
		"an error of a moment":                   {joining(5*time.Second, cause.Launched), []diagnosis.Evidence{line(time.Second, noHost)}, diagnosis.OnItsWay, "[]"},
		"the same that lasts":                    {joining(time.Minute, cause.Launched), []diagnosis.Evidence{line(time.Second, noHost)}, diagnosis.Found, "[M-NET-26]"},
		"the same that is over":                  {joining(2*time.Minute, cause.Launched), []diagnosis.Evidence{line(90*time.Second, noHost)}, diagnosis.OnItsWay, "[]"},
		"the same, and the step is done":         {joining(2*time.Minute, cause.NodeRegistered), []diagnosis.Evidence{line(time.Second, noHost)}, diagnosis.OnItsWay, "[]"},
		"a proxy that refuses, not the endpoint": {joining(time.Minute, cause.Launched), []diagnosis.Evidence{line(time.Second, badProxy)}, diagnosis.Found, "[M-NET-28]"},
		"a webhook that refuses connections":     {joining(time.Minute, cause.Launched), []diagnosis.Evidence{line(time.Second, awayHook+`connect: connection refused"`)}, diagnosis.Found, "[M-IAM-19]"},
		"a webhook that does not answer":         {joining(time.Minute, cause.Launched), []diagnosis.Evidence{line(time.Second, awayHook+`i/o timeout"`)}, diagnosis.Found, "[M-IAM-19]"},
		"a webhook of another authority":         {joining(time.Minute, cause.Launched), []diagnosis.Evidence{line(time.Second, badHook)}, diagnosis.Found, "[M-IAM-19]"},
		"a proxy of another authority":           {joining(time.Minute, cause.Launched), []diagnosis.Evidence{line(time.Second, foreignProxy)}, diagnosis.Found, "[M-NET-28]"},
		"a name server that does not answer":     {joining(time.Hour, cause.Launched), []diagnosis.Evidence{line(time.Second, noNames+`read udp 172.31.0.9:4711->172.31.0.2:53: i/o timeout"`)}, diagnosis.NotKnown, "[]"},
		"a name server that refuses":             {joining(time.Hour, cause.Launched), []diagnosis.Evidence{line(time.Second, noNames+`read udp 172.31.0.9:4711->172.31.0.2:53: read: connect: connection refused"`)}, diagnosis.NotKnown, "[]"},
		"metadata that are away":                 {joining(time.Hour, cause.Launched), []diagnosis.Evidence{line(time.Second, noMetadata+`request canceled, context deadline exceeded`)}, diagnosis.NotKnown, "[]"},
		"an instance without a role":             {joining(time.Hour, cause.Launched), []diagnosis.Evidence{line(time.Second, noMetadata+`https response error StatusCode: 404, request to EC2 IMDS failed`)}, diagnosis.Found, "[M-IAM-12]"},
		"a webhook about something else":         {joining(time.Minute, cause.Launched), []diagnosis.Evidence{audited("500/pods", hookSays)}, diagnosis.OnItsWay, "[]"},
		"a webhook about nodes":                  {joining(time.Minute, cause.Launched), []diagnosis.Evidence{audited("500/nodes", hookSays)}, diagnosis.Found, "[M-IAM-19]"},
		"a request that is new":                  {healthy, []diagnosis.Evidence{since(time.Second, diagnosis.Evidence{Source: cause.FromRequest, Code: "Pending/"})}, diagnosis.Healthy, "[]"},
		"a request that waits":                   {healthy, []diagnosis.Evidence{since(time.Minute, diagnosis.Evidence{Source: cause.FromRequest, Code: "Pending/"})}, diagnosis.Found, "[M-TLS-37]"},
		"a node that reboots":                    {was(), []diagnosis.Evidence{since(time.Second, noNetwork)}, diagnosis.NotKnown, "[]"},
		"a node whose network is away":           {was(), []diagnosis.Evidence{since(2*time.Minute, noNetwork)}, diagnosis.Found, "[M-READY-63]"},
		"of a node that is silent, the reason":   {was(), []diagnosis.Evidence{silent, line(time.Second, badAuthority)}, diagnosis.Found, "[M-TLS-33]"},
		"of a node that is silent, no reason":    {was(), []diagnosis.Evidence{silent}, diagnosis.Found, "[M-READY-65]"},
		"an identifier that there is not":        {joining(time.Second, cause.Launched), []diagnosis.Evidence{{Source: cause.FromMachine, Cause: "M-IAM-99", Trouble: true}}, diagnosis.NotKnown, "[]"},
		"a word that a part wrote, not the text": {joining(time.Hour, cause.Launched), []diagnosis.Evidence{{Source: cause.FromReport, Code: "DiskFull", Cause: "M-IAM-01", Trouble: true}}, diagnosis.Found, "[M-IAM-01]"},
	} {
		f := test.facts
		f.Evidence = test.evidence
		r := diagnosis.Decide(catalogue(t), f, noon)
		if got := fmt.Sprint(causes(r)); r.Verdict != test.verdict || got != test.causes {
			t.Errorf("%s: %s %s, want %s %s", name, r.Verdict, got, test.verdict, test.causes)
		}
	}
}

func TestConsequencesAndFix(t *testing.T) {
	t.Parallel()
	f := was()
	f.Evidence = []diagnosis.Evidence{{Source: cause.FromNode, Code: "Ready/NodeStatusUnknown"}, line(3*time.Second, refusedDial), line(time.Second, refusedDial)}
	r := diagnosis.Decide(catalogue(t), f, noon)
	if len(r.Causes) != 1 || r.Causes[0].Cause != "M-NET-27" || !slices.Equal(r.Causes[0].Consequences, []cause.ID{"M-READY-65"}) {
		t.Fatalf("%+v", r.Causes)
	}
	if len(r.Causes[0].Evidence) != 1 || !r.Causes[0].Evidence[0].Time.Equal(noon.Add(-time.Second)) {
		t.Errorf("the evidence is not the newest, once: %+v", r.Causes[0].Evidence)
	}
	f.Evidence = f.Evidence[:1]
	if fix := diagnosis.Decide(catalogue(t), f, noon).Causes[0].Fix; !strings.Contains(fix, "muster logs i-1 --component kubelet") || strings.Contains(fix, "$") {
		t.Errorf("the fix is %q", fix)
	}
	f.Names = nil
	if fix := diagnosis.Decide(catalogue(t), f, noon).Causes[0].Fix; !strings.Contains(fix, "muster logs $MACHINE") {
		t.Errorf("without a name the fix is %q", fix)
	}
}

// The fix of a machine's cause has no name of the machine where that of the request belongs.
func TestFixNamesNoOtherKind(t *testing.T) {
	t.Parallel()
	f := was()
	f.Evidence = []diagnosis.Evidence{{Source: cause.FromRequest, Object: "csr/csr-1", Code: "Denied/machine"}}
	r := diagnosis.Decide(catalogue(t), f, noon)
	if len(r.Causes) != 1 || r.Causes[0].Cause != "M-TLS-87" || strings.Contains(r.Causes[0].Fix, "csr i-1") {
		t.Errorf("%+v", r.Causes)
	}
}

// The certificate controller tells people of a denial with the cause that explain names.
func TestCausesOfDenials(t *testing.T) {
	t.Parallel()
	for _, rule := range policy.RuleIDs() {
		f := was()
		f.Evidence = []diagnosis.Evidence{{Source: cause.FromRequest, Object: "csr/csr-1", Code: "Denied/" + string(rule)}}
		if r := diagnosis.Decide(catalogue(t), f, noon); len(r.Causes) != 1 || string(r.Causes[0].Cause) != policy.CauseOf(rule) {
			t.Errorf("rule %s is told with %s, and explain says %+v", rule, policy.CauseOf(rule), r.Causes)
		}
	}
}

func TestSteps(t *testing.T) {
	t.Parallel()
	letters := map[diagnosis.StepState]string{
		diagnosis.StepDone: "d", diagnosis.StepWaiting: "w", diagnosis.StepFailed: "F", diagnosis.StepNotReached: ".", diagnosis.StepNotNeeded: "-", diagnosis.StepNotSeen: "?",
	}
	states := func(f diagnosis.Facts) string {
		var all []string
		for _, s := range diagnosis.Decide(catalogue(t), f, noon).Steps {
			all = append(all, letters[s.State])
		}
		return strings.Join(all, "")
	}
	healthy := joining(time.Hour, cause.Ready)
	healthy.Healthy = true
	if got, want := states(healthy), "dddddd---dddddd"; got != want {
		t.Errorf("of a machine that is Ready:\n%s\n%s", got, want)
	}
	delete(healthy.Steps, cause.ServingCSRIssued)
	if got, want := states(healthy), "dddddd---ddd?dd"; got != want {
		t.Errorf("without a serving certificate:\n%s\n%s", got, want)
	}
	late := joining(time.Hour, cause.APIReached)
	late.ByRole = false
	if got, want := states(late), "ddddddw........"; got != want {
		t.Errorf("of a machine with a token:\n%s\n%s", got, want)
	}
	refused := joining(time.Hour, cause.Launched)
	refused.Evidence = []diagnosis.Evidence{{Source: cause.FromReport, Code: "UserDataFailed", Trouble: true}}
	if got, want := states(refused), "dF."; !strings.HasPrefix(got, want) {
		t.Errorf("of a machine whose user data failed:\n%s\n%s", got, want)
	}
	unknown := joining(time.Hour, cause.Launched)
	if got, want := states(unknown), "d????w-"; !strings.HasPrefix(got, want) {
		t.Errorf("of a machine that nothing is known of:\n%s\n%s", got, want)
	}
	unknown.Evidence = []diagnosis.Evidence{{Source: cause.FromMachine, Cause: "M-IAM-01"}}
	if got, want := states(unknown), "d????F-"; !strings.HasPrefix(got, want) {
		t.Errorf("of a machine that is refused:\n%s\n%s", got, want)
	}
	lost := was()
	if got, want := states(lost), "dddddd---ddddw."; got != want {
		t.Errorf("of a machine that was Ready:\n%s\n%s", got, want)
	}
	if got := states(diagnosis.Facts{Kind: "cluster", Healthy: true}); got != "" {
		t.Errorf("of a cluster: %s", got)
	}
}
