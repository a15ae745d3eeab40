// SPDX-License-Identifier: Apache-2.0

package events

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/aws/arn"
	"muster.dev/muster/internal/aws/awsactions"
	"muster.dev/muster/internal/aws/awsfront"
	"muster.dev/muster/internal/aws/awsfront/awsfronttest"
	"muster.dev/muster/internal/aws/nexttoken"
	"muster.dev/muster/internal/cloud/awsresource"
)

const (
	testRegion = "eu-west-1"
	account    = awsfronttest.Account
	jobs       = "arn:aws:sqs:eu-west-1:000000000000:jobs"
	spotRule   = "arn:aws:events:eu-west-1:000000000000:rule/spot"
	spotOnly   = `{"source":["aws.ec2"],"detail-type":["EC2 Spot Instance Interruption Warning"]}`
)

// world is a front with the actions over a management plane in memory.
type world struct {
	t       *testing.T
	gate    *awsfronttest.Gate
	api     client.Client
	front   *awsfront.Front
	bus     *Bus
	handler http.Handler
	// sent has a line for each message: queue, rule, body. fails is what queues answer instead.
	sent  []string
	fails error
}

func newWorld(t *testing.T, objects ...client.Object) *world {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	now := func() time.Time { return time.Unix(1_800_000_000, 0) }
	w := &world{t: t, gate: &awsfronttest.Gate{}}
	w.api = fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).WithInterceptorFuncs(awsfronttest.Numbered(func(int) time.Time { return now() })).Build()
	w.front = awsfronttest.New(t, w.gate, now)
	var err error
	if w.bus, err = New(Config{
		Account: awsresource.Account{Management: w.api, Pages: nexttoken.NewSealer([nexttoken.KeySize]byte{1}), Region: testRegion}, AccountID: account, Now: now,
		State: func(m *v1alpha1.Machine) string { return m.Labels["state"] },
		Deliver: func(_ context.Context, to, rule arn.ARN, body string) error {
			if w.fails == nil {
				w.sent = append(w.sent, fmt.Sprint(to, " ", rule, " ", body))
			}
			return w.fails
		},
	}); err != nil {
		t.Fatal(err)
	}
	w.bus.Register(w.front)
	if w.handler, err = w.front.Handler(service); err != nil {
		t.Fatal(err)
	}
	return w
}

type in = map[string]any

// ask sends a request, and compares what comes: a status, and parts of the body.
func (w *world) ask(action string, in in, status int, has ...string) {
	w.t.Helper()
	body, err := json.Marshal(in)
	if err != nil {
		w.t.Fatal(err)
	}
	r := httptest.NewRequestWithContext(w.t.Context(), http.MethodPost, "/", strings.NewReader(string(body)))
	r.Header.Set("Content-Type", "application/x-amz-json-1.1")
	r.Header.Set("X-Amz-Target", "AWSEvents."+action)
	answer := httptest.NewRecorder()
	w.handler.ServeHTTP(answer, r)
	text := answer.Body.String()
	if answer.Code != status {
		w.t.Errorf("%s %s: %d %s, want %d", action, body, answer.Code, text, status)
	}
	for _, part := range has {
		if !strings.Contains(text, part) {
			w.t.Errorf("%s %s: %s, want %s", action, body, text, part)
		}
	}
}

// rule makes a rule that sends to the queue.
func (w *world) rule(name, pattern string) {
	w.t.Helper()
	w.ask("PutRule", in{"Name": name, "EventPattern": pattern}, 200, "rule/"+name)
	w.ask("PutTargets", in{"Rule": name, "Targets": []in{{"Id": "queue", "Arn": jobs}}}, 200, `"FailedEntryCount":0`)
}

func TestTheActionsFitTheTable(t *testing.T) {
	w := newWorld(t)
	if err := w.front.Check(); err != nil {
		t.Error(err)
	}
	fine := func(of, action string) bool {
		if of == service {
			return w.front.Answers(of, action)
		}
		a, _ := awsactions.NewList().Find(of, action)
		return a.Mark != awsactions.Refused && !awsactions.NewList().NotYet(of, action)
	}
	for _, problem := range awsactions.Problems(fine) {
		t.Error(problem)
	}
}

// The life of Terraform's aws_cloudwatch_event_rule and aws_cloudwatch_event_target.
func TestLifeOfARule(t *testing.T) {
	w := newWorld(t)
	w.ask("PutRule", in{"Name": "spot", "EventPattern": spotOnly, "Description": "spot", "State": "ENABLED", "EventBusName": "default", "Tags": []in{{"Key": "team", "Value": "a"}}}, 200, `{"RuleArn":"`+spotRule+`"}`)
	w.ask("DescribeRule", in{"Name": "spot", "EventBusName": "default"}, 200, `"Arn":"`+spotRule+`"`, `"State":"ENABLED"`, `"EventBusName":"default"`, `"Description":"spot"`, `"CreatedBy":"`+account+`"`)
	w.ask("ListTagsForResource", in{"ResourceARN": spotRule}, 200, `{"Tags":[{"Key":"team","Value":"a"}]}`)
	w.ask("TagResource", in{"ResourceARN": spotRule, "Tags": []in{{"Key": "stage", "Value": "b"}}}, 200)
	w.ask("UntagResource", in{"ResourceARN": spotRule, "TagKeys": []string{"team"}}, 200)
	w.ask("ListTagsForResource", in{"ResourceARN": spotRule}, 200, `{"Tags":[{"Key":"stage","Value":"b"}]}`)
	w.ask("PutTargets", in{"Rule": "spot", "Targets": []in{{"Id": "queue", "Arn": jobs}}}, 200)
	w.ask("PutTargets", in{"Rule": "spot", "Targets": []in{{"Id": "queue", "Arn": jobs, "Input": `{"a":1}`}}}, 200) // in its place
	w.ask("ListTargetsByRule", in{"Rule": "spot"}, 200, `{"Targets":[{"Id":"queue","Arn":"`+jobs+`","Input":"{\"a\":1}"}]}`)
	w.ask("PutRule", in{"Name": "spot", "EventPattern": `{"source":["mine"]}`, "State": "DISABLED"}, 200)
	w.ask("DescribeRule", in{"Name": "spot"}, 200, "DISABLED", "mine")
	w.ask("ListTargetsByRule", in{"Rule": "spot"}, 200, jobs)
	w.ask("EnableRule", in{"Name": "spot"}, 200)
	w.ask("ListRules", in{"NamePrefix": "s"}, 200, spotRule, "ENABLED")
	w.ask("ListRules", in{"NamePrefix": "x"}, 200, `{"Rules":[]}`)
	w.ask("DeleteRule", in{"Name": "spot"}, 400, "ValidationException", "has targets")
	w.ask("RemoveTargets", in{"Rule": "spot", "Ids": []string{"queue", "none"}}, 200, `"FailedEntryCount":0`)
	w.ask("DeleteRule", in{"Name": "spot"}, 200)
	w.ask("DeleteRule", in{"Name": "spot"}, 200)
	w.ask("DescribeRule", in{"Name": "spot"}, 400, "ResourceNotFoundException")
	if asked := strings.Join(w.gate.Asked, "\n"); !strings.Contains(asked, "events:PutTargets "+spotRule+" aws:resourcetag/stage=b events:targetarn="+jobs) {
		t.Errorf("IAM is asked %s", asked)
	}
}

func TestRefusals(t *testing.T) {
	w := newWorld(t)
	w.rule("spot", spotOnly)
	for _, c := range []struct {
		action string
		in     in
		says   string
	}{
		{"PutRule", in{"Name": "a b", "EventPattern": spotOnly}, "ValidationException"},
		{"PutRule", in{"Name": "a"}, "no schedules"},
		{"PutRule", in{"Name": "a", "ScheduleExpression": "rate(1 minute)", "EventPattern": spotOnly}, "does not support ScheduleExpression"},
		{"PutRule", in{"Name": "a", "EventPattern": `{"source":[{"regex":"x"}]}`}, "InvalidEventPatternException"},
		{"PutRule", in{"Name": "a", "EventPattern": spotOnly, "State": "ON"}, "ENABLED or DISABLED"},
		{"PutRule", in{"Name": "a", "EventPattern": spotOnly, "EventBusName": "other"}, "ResourceNotFoundException"},
		{"PutTargets", in{"Rule": "none", "Targets": []in{{"Id": "q", "Arn": jobs}}}, "ResourceNotFoundException"},
		{"PutTargets", in{"Rule": "spot", "Targets": []in{{"Id": "q", "Arn": "arn:aws:lambda:eu-west-1:000000000000:function:f"}}}, "SQS queues of the account only"},
		{"PutTargets", in{"Rule": "spot", "Targets": []in{{"Id": "q", "Arn": strings.Replace(jobs, account, "111111111111", 1)}}}, "SQS queues of the account only"},
		{"PutTargets", in{"Rule": "spot", "Targets": []in{{"Id": "q", "Arn": jobs, "Input": "no"}}}, "is not JSON"},
		{"PutTargets", in{"Rule": "spot", "Targets": []in{{"Id": "q", "Arn": jobs, "Input": `"` + strings.Repeat("x", 8191) + `"`}}}, "there may be 8192"},
		{"PutTargets", in{"Rule": "spot", "Targets": []in{{"Id": "q", "Arn": jobs, "Input": `{"version":"0","source":"aws.ec2","detail-type":"EC2 Spot Instance Interruption Warning"}`}}}, "name another source"},
		{"PutTargets", in{"Rule": "spot", "Targets": []in{{"Id": "q", "Arn": jobs, "Input": `{"source":"mine","SOURCE":"aws.ec2"}`}}}, "name another source"},
		{"PutTargets", in{"Rule": "spot", "Targets": []in{{"Id": "q", "Arn": jobs, "Input": "{\"\u017fource\":\"aws.ec2\"}"}}}, "name another source"},
		{"PutTargets", in{"Rule": "spot", "Targets": []in{{"Id": "q", "Arn": jobs, "InputPath": "$.detail"}}}, "does not support"},
		{"PutTargets", in{"Rule": "spot", "Targets": []in{{"Id": "1", "Arn": jobs}, {"Id": "2", "Arn": jobs}, {"Id": "3", "Arn": jobs}, {"Id": "4", "Arn": jobs}, {"Id": "5", "Arn": jobs}}}, "LimitExceededException"},
		{"ListTagsForResource", in{"ResourceARN": jobs}, "not one of a rule"},
		{"ListTagsForResource", in{"ResourceARN": strings.Replace(spotRule, account, "111111111111", 1)}, "ResourceNotFoundException"},
		{"PutEvents", in{"Entries": []in{}}, "length from 1 to 10"},
		{"TestEventPattern", in{"EventPattern": "{}", "Event": "{}"}, "InvalidEventPatternException"},
	} {
		w.ask(c.action, c.in, 400, c.says)
	}
	w.ask("ListRules", in{}, 200, `"Name":"spot"`)
	w.gate.Denies = true
	w.ask("PutRule", in{"Name": "denied", "EventPattern": spotOnly}, 400, "AccessDeniedException")
	w.gate.Denies = false
	w.ask("DescribeRule", in{"Name": "denied"}, 400, "ResourceNotFoundException")
}

func TestPutEvents(t *testing.T) {
	w := newWorld(t)
	w.rule("mine", `{"source":["mine"],"detail":{"n":[{"numeric":[">",1]}]}}`)
	w.rule("spot", spotOnly)
	w.ask("PutEvents", in{"Entries": []in{
		{"Source": "mine", "DetailType": "d", "Detail": `{"n":2}`, "Resources": []string{"r"}},
		{"Source": "mine", "DetailType": "d", "Detail": `{"n":1}`},
		{"Source": "aws.ec2", "DetailType": "EC2 Spot Instance Interruption Warning", "Detail": `{"instance-id":"i-1"}`},
		{"Source": "mine", "DetailType": "d", "Detail": `[]`},
		{"Source": "mine", "Detail": `{}`},
		{"Source": "mine", "DetailType": "d", "Detail": `{"n":2,"n":3}`},
		{"Source": "mine", "DetailType": "d", "Detail": `{"n":` + strings.Repeat("[", 40) + strings.Repeat("]", 40) + `}`},
	}}, 200, `"FailedEntryCount":5`, "there twice", "nested deeper", "NotAuthorizedForSourceException", "MalformedDetail", "InvalidArgument", "EventId")
	if len(w.sent) != 1 || !strings.HasPrefix(w.sent[0], jobs+" arn:aws:events:eu-west-1:000000000000:rule/mine {\"version\":\"0\",\"id\":\"") ||
		!strings.HasSuffix(w.sent[0], `"detail-type":"d","source":"mine","account":"000000000000","time":"2027-01-15T08:00:00Z","region":"eu-west-1","resources":["r"],"detail":{"n":2}}`) {
		t.Errorf("sent %q", w.sent)
	}
	entry := []in{{"Source": "mine", "DetailType": "d", "Detail": `{"n":2}`}}
	w.fails = errors.New("no disk")
	w.ask("PutEvents", in{"Entries": entry}, 200, `"FailedEntryCount":1`, "InternalException")
	w.fails = fmt.Errorf("%w: no policy", ErrRefused) // dropped, as EventBridge does in the end
	w.ask("PutEvents", in{"Entries": entry}, 200, `"FailedEntryCount":0`)
	w.fails, w.sent = nil, nil
	w.ask("DisableRule", in{"Name": "mine"}, 200)
	w.ask("PutEvents", in{"Entries": entry}, 200, `"FailedEntryCount":0`)
	if len(w.sent) != 0 {
		t.Errorf("a rule that is disabled sends %q", w.sent)
	}
	w.ask("TestEventPattern", in{"EventPattern": spotOnly, "Event": `{"source":"aws.ec2","detail-type":"EC2 Spot Instance Interruption Warning"}`}, 200, `{"Result":true}`)
}

// The events of instances, as Karpenter's parsers read them (pkg/controllers/interruption/messages).
func TestEventsOfInstances(t *testing.T) {
	w := newWorld(t)
	w.rule("all", `{"source":["aws.ec2","aws.health"]}`)
	i := Instance{ID: "i-0123456789abcdef0", Zone: "eu-west-1a", Region: testRegion, Account: account}
	now := time.Unix(1_800_000_000, 0)
	for _, e := range []Event{SpotInterruption(i, now), Rebalance(i, now), StateChange(i, "stopping", now), ScheduledChange(i, now.Add(time.Hour), now)} {
		if err := w.bus.Emit(t.Context(), e); err != nil {
			t.Fatal(err)
		}
	}
	for at, want := range []string{
		`"detail-type":"EC2 Spot Instance Interruption Warning","source":"aws.ec2","account":"000000000000","time":"2027-01-15T08:00:00Z","region":"eu-west-1","resources":["arn:aws:ec2:eu-west-1a:instance/i-0123456789abcdef0"],"detail":{"instance-id":"i-0123456789abcdef0","instance-action":"terminate"}}`,
		`"detail-type":"EC2 Instance Rebalance Recommendation","source":"aws.ec2","account":"000000000000","time":"2027-01-15T08:00:00Z","region":"eu-west-1","resources":["arn:aws:ec2:eu-west-1a:instance/i-0123456789abcdef0"],"detail":{"instance-id":"i-0123456789abcdef0"}}`,
		`"detail-type":"EC2 Instance State-change Notification","source":"aws.ec2","account":"000000000000","time":"2027-01-15T08:00:00Z","region":"eu-west-1","resources":["arn:aws:ec2:eu-west-1:000000000000:instance/i-0123456789abcdef0"],"detail":{"instance-id":"i-0123456789abcdef0","state":"stopping"}}`,
		`"service":"EC2","eventTypeCode":"AWS_EC2_PERSISTENT_INSTANCE_RETIREMENT_SCHEDULED","eventTypeCategory":"scheduledChange","startTime":"Fri, 15 Jan 2027 09:00:00 UTC"`,
	} {
		if len(w.sent) != 4 || !strings.Contains(w.sent[at], want) {
			t.Errorf("event %d: %q, want %s", at, w.sent, want)
		}
	}
}

func machineIn(id, state string) *v1alpha1.Machine {
	return &v1alpha1.Machine{ObjectMeta: metav1.ObjectMeta{Name: id, Labels: map[string]string{"state": state}}, Status: v1alpha1.MachineStatus{ProviderID: "aws:///eu-west-1a/" + id}}
}

// States are told while a rule is there, each change once, also changes during an outage.
func TestStateChanges(t *testing.T) {
	a, b := machineIn("i-0000000000000000a", "running"), machineIn("i-0000000000000000b", "pending")
	w := newWorld(t, a, b)
	look := func(want ...string) {
		t.Helper()
		if err := w.bus.look(t.Context()); err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, line := range w.sent {
			_, detail, _ := strings.Cut(line, `"detail":{"instance-id":"i-0000000000000000`)
			got = append(got, strings.NewReplacer(`","state":"`, " ", `"}}`, "").Replace(detail))
		}
		if w.sent = nil; !slices.Equal(got, want) {
			t.Errorf("told %q, want %q", got, want)
		}
	}
	set := func(m *v1alpha1.Machine, state string) {
		t.Helper()
		m.Labels["state"] = state
		if err := w.api.Update(t.Context(), m); err != nil {
			t.Fatal(err)
		}
	}
	look()
	w.rule("states", `{"source":["aws.ec2","aws.health"]}`)
	look() // a rule hears of no state that was there before it
	set(b, "running")
	look("b running")
	look()
	set(a, "shutting-down")
	w.fails = errors.New("no disk")
	if err := w.bus.look(t.Context()); err == nil {
		t.Error("an event that was not sent is forgotten")
	}
	w.fails = nil
	look("a shutting-down")
	if err := w.api.Delete(t.Context(), a); err != nil {
		t.Fatal(err)
	}
	w.bus = &Bus{Config: w.bus.Config} // another process
	look("a terminated")
	w.ask("DisableRule", in{"Name": "states"}, 200)
	look()
	set(b, "stopped")
	look()
	w.ask("EnableRule", in{"Name": "states"}, 200)
	look()
	set(b, "pending")
	look("b pending")
	// An announcement is sent once for each drill, before the state that comes of it.
	drills := func(m *v1alpha1.Machine, kind v1alpha1.DrillKind) {
		m.Spec.Drill = &v1alpha1.MachineDrill{Kind: kind, Began: metav1.NowMicro(), Ends: metav1.NewTime(time.Now().Add(time.Minute))}
		m.Status.Drill = &v1alpha1.MachineDrillStatus{Kind: kind, Began: m.Spec.Drill.Began}
	}
	for i, kind := range map[string]v1alpha1.DrillKind{"EC2 Spot Instance Interruption Warning": v1alpha1.DrillSpotInterruption, "EC2 Instance Rebalance Recommendation": v1alpha1.DrillRebalance, "AWS Health Event": v1alpha1.DrillMaintenance} {
		drills(b, kind)
		set(b, "shutting-down")
		if err := w.bus.look(t.Context()); err != nil || len(w.sent) == 0 || !strings.Contains(w.sent[0], `"detail-type":"`+i+`"`) {
			t.Errorf("announced %q, %v", w.sent, err)
		}
		w.sent = nil
		look()
	}
	b.Status.Drill.EndedAt = new(metav1.Now())
	set(b, "shutting-down")
	look()
	drills(b, v1alpha1.DrillStop)
	set(b, "shutting-down")
	look()
}

// A queue that cannot be written keeps no event from other queues, and an event does not come to them forever.
func TestABrokenQueueHoldsNothingBack(t *testing.T) {
	a, b := machineIn("i-0000000000000000a", "running"), machineIn("i-0000000000000000b", "running")
	w := newWorld(t, a, b)
	w.rule("states", `{"source":["aws.ec2"],"detail":{"instance-id":["i-0000000000000000a"]}}`)
	w.rule("others", `{"source":["aws.ec2"]}`)
	deliver := w.bus.Deliver
	w.bus.Deliver = func(ctx context.Context, to, rule arn.ARN, body string) error {
		if strings.HasSuffix(rule.Resource, "/states") {
			return errors.New("no disk")
		}
		return deliver(ctx, to, rule, body)
	}
	_ = w.bus.look(t.Context())
	for _, m := range []*v1alpha1.Machine{a, b} {
		m.Labels["state"] = "shutting-down"
		if err := w.api.Update(t.Context(), m); err != nil {
			t.Fatal(err)
		}
	}
	for range 20 {
		_ = w.bus.look(t.Context())
	}
	count := func(id string) int {
		return len(slices.DeleteFunc(slices.Clone(w.sent), func(line string) bool { return !strings.Contains(line, id) }))
	}
	if got := count(b.Name); got != 1 {
		t.Errorf("the event of another instance came %d times, want 1", got)
	}
	if got := count(a.Name); got != 5 {
		t.Errorf("the event came %d times to a queue that takes it, want 5", got)
	}
	if err := w.bus.look(t.Context()); err != nil {
		t.Errorf("it is tried forever: %v", err)
	}
}
