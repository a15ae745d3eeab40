// SPDX-License-Identifier: Apache-2.0

package fis

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/aws/awsactions"
	"muster.dev/muster/internal/aws/awsfront"
	"muster.dev/muster/internal/aws/awsfront/awsfronttest"
	"muster.dev/muster/internal/aws/nexttoken"
	"muster.dev/muster/internal/cloud/awsresource"
)

const (
	testRegion = "eu-west-1"
	account    = awsfronttest.Account
	roleARN    = "arn:aws:iam::000000000000:role/fis"
	spot       = "i-0000000000000000a"
)

// world is a front with the actions over a management plane in memory.
type world struct {
	t           *testing.T
	gate        *awsfronttest.Gate
	api         client.Client
	front       *awsfront.Front
	experiments *Experiments
	handler     http.Handler
	now         time.Time
	// asked has a line for each question about the role; denies is the answer.
	asked  []string
	denies error
}

func role(name, service string) *v1alpha1.IAMRole {
	return &v1alpha1.IAMRole{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: v1alpha1.IAMRoleSpec{
			IAMName:     v1alpha1.IAMName{ARN: "arn:aws:iam::000000000000:role/" + name},
			TrustPolicy: `{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Principal":{"Service":"` + service + `"},"Action":"sts:AssumeRole"}]}`,
		},
	}
}

func instance(id string, market v1alpha1.MarketType, change func(*v1alpha1.Machine)) *v1alpha1.Machine {
	m := &v1alpha1.Machine{ObjectMeta: metav1.ObjectMeta{Name: id}}
	m.Spec.ClusterName, m.Spec.Provider, m.Spec.MarketType, m.Spec.Tags = "muster", v1alpha1.ProviderLocal, market, v1alpha1.Tags{"team": "a"}
	m.Status.ProviderID = "aws:///eu-west-1a/" + id
	if change != nil {
		change(m)
	}
	return m
}

func newWorld(t *testing.T, objects ...client.Object) *world {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	w := &world{t: t, gate: &awsfronttest.Gate{}, now: time.Unix(1_800_000_000, 0)}
	clock := func() time.Time { return w.now }
	objects = append(objects, role("fis", Principal), role("ec2", "ec2.amazonaws.com"))
	w.api = fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).WithInterceptorFuncs(awsfronttest.Numbered(func(n int) time.Time { return w.now.Add(time.Duration(n) * time.Second) })).Build()
	w.front = awsfronttest.New(t, w.gate, clock)
	var err error
	if w.experiments, err = New(Config{
		Account:   awsresource.Account{Management: w.api, Pages: nexttoken.NewSealer([nexttoken.KeySize]byte{1}), Region: testRegion},
		AccountID: account, Now: clock, State: func(*v1alpha1.Machine) string { return "running" },
		Role: func(_ context.Context, use Use) error {
			w.asked = append(w.asked, fmt.Sprint(use.Role, " ", use.Experiment, " ", use.Action, " ", use.Resource, " ", use.Conditions["aws:ResourceTag/team"]))
			return w.denies
		},
	}); err != nil {
		t.Fatal(err)
	}
	w.experiments.Register(w.front)
	if w.handler, err = w.front.Handler(Service); err != nil {
		t.Fatal(err)
	}
	return w
}

type in = map[string]any

// ask sends a request and returns the body of the answer, which must have a status and parts.
func (w *world) ask(method, path string, in in, status int, has ...string) string {
	w.t.Helper()
	body := ""
	if in != nil {
		raw, err := json.Marshal(in)
		if err != nil {
			w.t.Fatal(err)
		}
		body = string(raw)
	}
	r := httptest.NewRequestWithContext(w.t.Context(), method, path, strings.NewReader(body))
	r.Header.Set("Content-Type", "application/json")
	answer := httptest.NewRecorder()
	w.handler.ServeHTTP(answer, r)
	text := answer.Body.String()
	if answer.Code != status {
		w.t.Errorf("%s %s %s: %d %s, want %d", method, path, body, answer.Code, text, status)
	}
	for _, part := range has {
		if !strings.Contains(text, part) {
			w.t.Errorf("%s %s: %s, want %s", method, path, text, part)
		}
	}
	return text
}

// template is Karpenter's, about instances.
func template(change func(in), ids ...string) in {
	arns := []string{}
	for _, id := range ids {
		arns = append(arns, "arn:aws:ec2:eu-west-1:000000000000:instance/"+id)
	}
	t := in{
		"clientToken": "one", "description": "trigger", "roleArn": roleARN, "stopConditions": []in{{"source": "none"}}, "tags": in{"team": "a"},
		"targets": in{"itn0": in{"resourceType": "aws:ec2:spot-instance", "resourceArns": arns, "selectionMode": "ALL"}},
		"actions": in{"itn0": in{"actionId": "aws:ec2:send-spot-instance-interruptions", "parameters": in{"durationBeforeInterruption": "PT120S"}, "targets": in{"SpotInstances": "itn0"}}},
	}
	if change != nil {
		change(t)
	}
	return t
}

// idIn is the id in an answer.
func (w *world) idIn(text, prefix string) string {
	w.t.Helper()
	_, rest, found := strings.Cut(text, `"id":"`+prefix)
	id, _, _ := strings.Cut(rest, `"`)
	if !found {
		w.t.Fatalf("%s has no id", text)
	}
	return prefix + id
}

// started is an experiment of a new template.
func (w *world) started(change func(in), ids ...string) string {
	w.t.Helper()
	made := w.idIn(w.ask("POST", "/experimentTemplates", template(change, ids...), 200), templatePrefix)
	return w.idIn(w.ask("POST", "/experiments", in{"clientToken": "run", "experimentTemplateId": made}, 200, `"status":"initiating"`), experimentPrefix)
}

func (w *world) advance() {
	w.t.Helper()
	if err := w.experiments.advance(w.t.Context()); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) machine(id string) *v1alpha1.Machine {
	w.t.Helper()
	m := &v1alpha1.Machine{}
	if err := w.api.Get(w.t.Context(), client.ObjectKey{Name: id}, m); err != nil {
		w.t.Fatal(err)
	}
	return m
}

func TestTheActionsFitTheTable(t *testing.T) {
	w := newWorld(t)
	if err := w.front.Check(); err != nil {
		t.Error(err)
	}
	for _, problem := range awsactions.Problems(func(of, action string) bool {
		if of == Service {
			return w.front.Answers(of, action)
		}
		a, _ := awsactions.NewList().Find(of, action)
		return a.Mark != awsactions.Refused && !awsactions.NewList().NotYet(of, action)
	}) {
		t.Error(problem)
	}
}

// The life of a template, as Karpenter's tests and Terraform's aws_fis_experiment_template have it.
func TestLifeOfATemplate(t *testing.T) {
	w := newWorld(t)
	text := w.ask("POST", "/experimentTemplates", template(nil, spot), 200, `"description":"trigger"`, `"roleArn":"`+roleARN+`"`, `"stopConditions":[{"source":"none"}]`, `"accountTargeting":"single-account"`, `"emptyTargetResolutionMode":"fail"`, `"tags":{"team":"a"}`)
	id := w.idIn(text, templatePrefix)
	if again := w.ask("POST", "/experimentTemplates", template(nil, spot), 200); again != text {
		t.Errorf("the same request: %s, and %s before", again, text)
	}
	w.ask("POST", "/experimentTemplates", template(func(i in) { i["description"] = "other" }, spot), 409, "ConflictException")
	w.ask("GET", "/experimentTemplates/"+id, nil, 200, `"SpotInstances":"itn0"`, `"durationBeforeInterruption":"PT120S"`, "instance/"+spot)
	w.ask("GET", "/experimentTemplates?maxResults=1", nil, 200, id)
	w.ask("GET", "/experimentTemplates?maxResults=0", nil, 400, "ValidationException")
	arn := "arn:aws:fis:eu-west-1:000000000000:experiment-template/" + id
	tags := "/tags/" + strings.ReplaceAll(arn, "/", "%2F")
	w.ask("POST", tags, in{"tags": in{"stage": "b"}}, 200)
	w.ask("DELETE", tags+"?tagKeys=team", nil, 200)
	w.ask("GET", tags, nil, 200, `{"tags":{"stage":"b"}}`)
	w.ask("GET", strings.Replace(tags, account, "111111111111", 1), nil, 404, "ResourceNotFoundException")
	w.ask("GET", "/tags/arn:aws:sqs:eu-west-1:000000000000:jobs", nil, 400, "ValidationException")
	w.ask("DELETE", "/experimentTemplates/"+id, nil, 200, id)
	w.ask("DELETE", "/experimentTemplates/"+id, nil, 404, "ResourceNotFoundException")
	asked := strings.Join(w.gate.Asked, "\n")
	for _, want := range []string{
		"fis:CreateExperimentTemplate arn:aws:fis:eu-west-1:000000000000:experiment-template/* aws:requesttag/team=a aws:tagkeys=team",
		"fis:CreateExperimentTemplate arn:aws:fis:eu-west-1:000000000000:action/aws:ec2:send-spot-instance-interruptions",
		"iam:PassRole " + roleARN + " iam:passedtoservice=fis.amazonaws.com",
		"fis:DeleteExperimentTemplate " + arn + " aws:resourcetag/stage=b",
	} {
		if !strings.Contains(asked, want) {
			t.Errorf("IAM is not asked %s:\n%s", want, asked)
		}
	}
}

func TestRefusals(t *testing.T) {
	w := newWorld(t)
	for name, c := range map[string]struct {
		change func(in)
		says   string
	}{
		"no such role":      {func(i in) { i["roleArn"] = "arn:aws:iam::000000000000:role/none" }, "there is no such role"},
		"a role of another": {func(i in) { i["roleArn"] = "arn:aws:iam::000000000000:role/ec2" }, "does not let fis.amazonaws.com assume it"},
		"an alarm": {func(i in) {
			i["stopConditions"] = []in{{"source": "aws:cloudwatch:alarm", "value": "arn:aws:cloudwatch:x"}}
		}, "Muster has no alarms"},
		"no stop condition": {func(i in) { i["stopConditions"] = []in{} }, "the stopConditions must be one"},
		"several accounts":  {func(i in) { i["experimentOptions"] = in{"accountTargeting": "multi-account"} }, "are of a single-account"},
		"logs":              {func(i in) { i["logConfiguration"] = in{"logSchemaVersion": 2} }, "logConfiguration"},
		"another action":    {func(i in) { i["actions"].(in)["itn0"].(in)["actionId"] = "aws:ec2:reboot-instances" }, "Muster has aws:ec2:send-spot-instance-interruptions only"},
		"an order":          {func(i in) { i["actions"].(in)["itn0"].(in)["startAfter"] = []string{"itn1"} }, "startAfter"},
	} {
		if text := w.ask("POST", "/experimentTemplates", template(c.change, spot), 400, "ValidationException"); !strings.Contains(strings.ToLower(text), strings.ToLower(c.says)) {
			t.Errorf("%s: %s, want %q", name, text, c.says)
		}
	}
	w.ask("POST", "/experiments", in{"clientToken": "a", "experimentTemplateId": "EXTNONE"}, 404, "Experiment template EXTNONE does not exist.")
	w.ask("GET", "/experiments/EXPNONE", nil, 404, "ResourceNotFoundException")
	w.ask("DELETE", "/experiments/EXPNONE", nil, 404, "ResourceNotFoundException")
	w.gate.Denies = true
	w.ask("POST", "/experimentTemplates", template(nil, spot), 403, "AccessDeniedException")
	w.gate.Denies = false
	w.ask("GET", "/experimentTemplates", nil, 200, `{"experimentTemplates":[]}`)
}

// An experiment gives its instance a notice, and is over when the interruption has happened.
func TestAnInterruption(t *testing.T) {
	w := newWorld(t, instance(spot, v1alpha1.MarketSpot, nil))
	id := w.started(nil, spot)
	w.ask("GET", "/experiments/"+id, nil, 200, `"status":"pending"`)
	w.advance() // resolves
	w.ask("GET", "/experiments/"+id, nil, 200, `"status":"running"`)
	if want := roleARN + " arn:aws:fis:eu-west-1:000000000000:experiment/" + id + " ec2:SendSpotInstanceInterruptions arn:aws:ec2:eu-west-1:000000000000:instance/" + spot + " [a]"; strings.Join(w.asked, "\n") != want {
		t.Errorf("asked %q, want %s", w.asked, want)
	}
	if d := w.machine(spot).Spec.Drill; d != nil {
		t.Errorf("a drill before the experiment's record says that it runs: %+v", d)
	}
	w.advance()
	d := w.machine(spot).Spec.Drill
	if d == nil || d.Kind != v1alpha1.DrillSpotInterruption || d.Ends.Sub(d.Began.Time) != 2*time.Minute {
		t.Fatalf("drill %+v", d)
	}
	w.experiments = &Experiments{w.experiments.Config, make(chan struct{}, 1)} // another process
	w.now = w.now.Add(time.Minute)
	w.advance()
	if again := w.machine(spot).Spec.Drill; !again.Began.Equal(&d.Began) {
		t.Errorf("a second notice: %+v", again)
	}
	if err := w.api.Delete(t.Context(), w.machine(spot)); err != nil {
		t.Fatal(err)
	}
	w.advance()
	w.ask("GET", "/experiments/"+id, nil, 200, `"status":"completed"`, `"endTime":`)
	w.ask("GET", "/experiments?experimentTemplateId=EXTNONE", nil, 200, `{"experiments":[]}`)
	w.ask("GET", "/experiments", nil, 200, id)
	w.ask("DELETE", "/experiments/"+id, nil, 400, "it is completed")
}

// With more than two minutes there is a recommendation first; an experiment that is stopped takes its drill back.
func TestStopAnExperiment(t *testing.T) {
	w := newWorld(t, instance(spot, v1alpha1.MarketSpot, nil))
	id := w.started(func(i in) { i["actions"].(in)["itn0"].(in)["parameters"] = in{"durationBeforeInterruption": "PT10M"} }, spot)
	w.advance()
	w.advance()
	if d := w.machine(spot).Spec.Drill; d == nil || d.Kind != v1alpha1.DrillRebalance || d.Ends.Sub(d.Began.Time).Round(time.Minute) != 8*time.Minute {
		t.Fatalf("drill %+v", d)
	}
	w.ask("DELETE", "/experiments/"+id, nil, 200, `"status":"stopping"`)
	w.advance()
	if d := w.machine(spot).Spec.Drill; d != nil {
		t.Errorf("the drill is still there: %+v", d)
	}
	w.ask("GET", "/experiments/"+id, nil, 200, `"status":"stopped"`)
	w.advance()
}

// An experiment that cannot begin is failed, says why, and touches nothing.
func TestFailedExperiments(t *testing.T) {
	for name, c := range map[string]struct {
		machine *v1alpha1.Machine
		denies  error
		change  func(in)
		says    string
	}{
		"an instance on demand":   {machine: instance(spot, v1alpha1.MarketOnDemand, nil), says: "target itn0: there is no spot instance arn:aws:ec2:eu-west-1:000000000000:instance/" + spot},
		"a role without rights":   {machine: instance(spot, v1alpha1.MarketSpot, nil), denies: errors.New("no policy allows it"), says: "may not interrupt instance " + spot + ": no policy allows it"},
		"a simulated machine":     {machine: instance(spot, v1alpha1.MarketSpot, func(m *v1alpha1.Machine) { m.Spec.Provider = v1alpha1.ProviderSimulated }), says: "runs no pods, and has no drills"},
		"a machine of no cluster": {machine: instance(spot, v1alpha1.MarketSpot, func(m *v1alpha1.Machine) { m.Spec.ClusterName = "" }), says: "it is of no cluster"},
		"tags of nobody": {machine: instance(spot, v1alpha1.MarketSpot, nil), says: "it resolves to no spot instance", change: func(i in) {
			i["targets"].(in)["itn0"] = in{"resourceType": "aws:ec2:spot-instance", "resourceTags": in{"team": "z"}, "selectionMode": "COUNT(1)"}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, c.machine)
			w.denies = c.denies
			id := w.started(c.change, spot)
			w.advance()
			w.advance()
			if text := w.ask("GET", "/experiments/"+id, nil, 200, `"status":"failed"`, `"status":"cancelled"`); !strings.Contains(text, c.says) {
				t.Errorf("%s, want %q", text, c.says)
			}
			if d := w.machine(spot).Spec.Drill; d != nil {
				t.Errorf("drill %+v", d)
			}
		})
	}
}

// A target that resolves to nothing may be skipped; the sixth active experiment is refused; the oldest are forgotten.
func TestLimits(t *testing.T) {
	w := newWorld(t, instance(spot, v1alpha1.MarketSpot, nil))
	made := w.idIn(w.ask("POST", "/experimentTemplates", template(func(i in) {
		i["experimentOptions"] = in{"emptyTargetResolutionMode": "skip"}
		i["targets"].(in)["itn0"] = in{"resourceType": "aws:ec2:spot-instance", "resourceTags": in{"team": "z"}, "selectionMode": "ALL"}
	}), 200), templatePrefix)
	start := func(token string, status int, has ...string) {
		t.Helper()
		w.ask("POST", "/experiments", in{"clientToken": token, "experimentTemplateId": made}, status, has...)
	}
	for n := range maxActive {
		start(fmt.Sprint(n), 200)
	}
	start("0", 200) // the same request
	start("more", 402, "ServiceQuotaExceededException")
	w.advance()
	w.advance()
	w.ask("GET", "/experiments", nil, 200, `"status":"completed"`)
	for n := range maxEnded + 3 {
		r := &experimentRecord{ID: fmt.Sprint("fis-experiment-", n), Name: fmt.Sprint("EXP", n), Data: running{Status: stopped}}
		if err := experiments.Create(t.Context(), w.api, r); err != nil {
			t.Fatal(err)
		}
	}
	w.advance()
	all, err := experiments.List(t.Context(), w.api)
	if err != nil || len(all) != maxEnded {
		t.Errorf("%d experiments are kept, %v", len(all), err)
	}
}
