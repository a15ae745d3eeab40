// SPDX-License-Identifier: Apache-2.0

package sqs

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/aws/arn"
	"muster.dev/muster/internal/aws/awsactions"
	"muster.dev/muster/internal/aws/awsfront"
	"muster.dev/muster/internal/aws/awsfront/awsfronttest"
	"muster.dev/muster/internal/aws/nexttoken"
	"muster.dev/muster/internal/cloud/awsresource"
	"muster.dev/muster/internal/cloud/queuestore"
	"muster.dev/muster/internal/iam/iampolicy"
)

const (
	testRegion = "eu-west-1"
	account    = awsfronttest.Account
	jobs       = "https://sqs.eu-west-1.amazonaws.com/000000000000/jobs"
	jobsARN    = "arn:aws:sqs:eu-west-1:000000000000:jobs"
	aRule      = "arn:aws:events:eu-west-1:000000000000:rule/spot"
)

// world is a front with the actions over a management plane in memory and files, at a time that a test moves.
type world struct {
	t       *testing.T
	gate    *awsfronttest.Gate
	api     client.Client
	front   *awsfront.Front
	queues  *Queues
	handler http.Handler
	now     time.Time
	dir     string
}

func newWorld(t *testing.T) *world {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	w := &world{t: t, now: time.Unix(1_800_000_000, 0), dir: t.TempDir()}
	w.api = fake.NewClientBuilder().WithScheme(scheme).WithInterceptorFuncs(awsfronttest.Numbered(func(int) time.Time { return w.now })).Build()
	w.restart()
	return w
}

// restart is a service after one that was killed.
func (w *world) restart() {
	w.t.Helper()
	w.gate = &awsfronttest.Gate{}
	w.front = awsfronttest.New(w.t, w.gate, func() time.Time { return w.now })
	now := func() time.Time { return w.now }
	var err error
	if w.queues, err = New(Config{
		Account: awsresource.Account{Management: w.api, Pages: nexttoken.NewSealer([nexttoken.KeySize]byte{1}), Region: testRegion}, Store: queuestore.New(w.dir, now), Now: now,
		Bind: func(text string) (string, error) {
			document, err := iampolicy.Parse(iampolicy.OfResource, text)
			if err != nil {
				return "", err
			}
			return document.Text()
		},
		Show: func(text string) string { return text },
	}); err != nil {
		w.t.Fatal(err)
	}
	w.queues.Register(w.front)
	if w.handler, err = w.front.Handler(Service); err != nil {
		w.t.Fatal(err)
	}
}

// ask sends a request, and compares what comes: a status, and parts of the body.
func (w *world) ask(action string, in map[string]any, status int, has ...string) map[string]any {
	w.t.Helper()
	body, err := json.Marshal(in)
	if err != nil {
		w.t.Fatal(err)
	}
	r := httptest.NewRequestWithContext(w.t.Context(), http.MethodPost, "/", strings.NewReader(string(body)))
	r.Header.Set("Content-Type", "application/x-amz-json-1.0")
	r.Header.Set("X-Amz-Target", "AmazonSQS."+action)
	answer := httptest.NewRecorder()
	w.handler.ServeHTTP(answer, r)
	text := answer.Body.String()
	if answer.Code != status {
		w.t.Errorf("%s %.300s: %d %s, want %d", action, body, answer.Code, text, status)
	}
	for _, part := range has {
		if !strings.Contains(text+answer.Header().Get("X-Amzn-Query-Error"), part) {
			w.t.Errorf("%s %.300s: %s, want %s", action, body, text, part)
		}
	}
	if text == "" {
		return nil
	}
	var out map[string]any
	if err := json.Unmarshal([]byte(text), &out); err != nil {
		w.t.Fatalf("%s: %v", text, err)
	}
	return out
}

type in = map[string]any

func (w *world) create(name string, attributes in) {
	w.t.Helper()
	w.ask("CreateQueue", in{"QueueName": name, "Attributes": attributes}, 200, `"QueueUrl":"https://sqs.eu-west-1.amazonaws.com/000000000000/`+name+`"`)
}

// receive returns the messages that come.
func (w *world) receive(more in) []map[string]any {
	w.t.Helper()
	request := in{"QueueUrl": jobs, "MaxNumberOfMessages": 10, "AttributeNames": []string{"All"}, "MessageAttributeNames": []string{"All"}}
	maps.Copy(request, more)
	out := w.ask("ReceiveMessage", request, 200)
	var all []map[string]any
	messages, _ := out["Messages"].([]any)
	for _, m := range messages {
		all = append(all, m.(map[string]any))
	}
	return all
}

func TestTheActionsFitTheTable(t *testing.T) {
	w := newWorld(t)
	if err := w.front.Check(); err != nil {
		t.Error(err)
	}
	fine := func(service, action string) bool {
		if service == Service {
			return w.front.Answers(service, action)
		}
		a, _ := awsactions.NewList().Find(service, action)
		return a.Mark != awsactions.Refused && !awsactions.NewList().NotYet(service, action)
	}
	for _, problem := range awsactions.Problems(fine) {
		t.Error(problem)
	}
}

func TestLifeOfAQueue(t *testing.T) {
	w := newWorld(t)
	w.create("jobs", in{"MessageRetentionPeriod": "300", "SqsManagedSseEnabled": "true"})
	w.create("jobs", in{"MessageRetentionPeriod": "300"}) // again
	w.ask("CreateQueue", in{"QueueName": "jobs", "Attributes": in{"MessageRetentionPeriod": "400"}}, 400, "QueueNameExists", "MessageRetentionPeriod")
	w.ask("GetQueueUrl", in{"QueueName": "jobs"}, 200, jobs)
	w.ask("ListQueues", in{"QueueNamePrefix": "jo"}, 200, jobs)
	w.ask("ListQueues", in{"QueueNamePrefix": "x"}, 200, `"QueueUrls":[]`)
	attributes := w.ask("GetQueueAttributes", in{"QueueUrl": jobs, "AttributeNames": []string{"All"}}, 200)["Attributes"].(map[string]any)
	for name, want := range map[string]string{
		"QueueArn": jobsARN, "MessageRetentionPeriod": "300", "VisibilityTimeout": "30", "MaximumMessageSize": "1048576", "DelaySeconds": "0", "ReceiveMessageWaitTimeSeconds": "0",
		"SqsManagedSseEnabled": "true", "ApproximateNumberOfMessages": "0", "CreatedTimestamp": "1800000000", "LastModifiedTimestamp": "1800000000",
	} {
		if attributes[name] != want {
			t.Errorf("%s is %v, want %s", name, attributes[name], want)
		}
	}
	if _, has := attributes["Policy"]; has {
		t.Error("a policy was made up")
	}
	w.ask("SetQueueAttributes", in{"QueueUrl": jobs, "Attributes": in{"VisibilityTimeout": "5"}}, 200)
	w.ask("GetQueueAttributes", in{"QueueUrl": jobs, "AttributeNames": []string{"VisibilityTimeout", "KmsMasterKeyId"}}, 200, `{"Attributes":{"VisibilityTimeout":"5"}}`)
	w.ask("TagQueue", in{"QueueUrl": jobs, "Tags": in{"team": "a", "stage": "b"}}, 200)
	w.ask("UntagQueue", in{"QueueUrl": jobs, "TagKeys": []string{"stage"}}, 200)
	w.ask("ListQueueTags", in{"QueueUrl": jobs}, 200, `{"Tags":{"team":"a"}}`)
	w.ask("SendMessage", in{"QueueUrl": jobs, "MessageBody": "old"}, 200)
	w.ask("DeleteQueue", in{"QueueUrl": jobs}, 200)
	w.ask("GetQueueUrl", in{"QueueName": "jobs"}, 400, "QueueDoesNotExist", "AWS.SimpleQueueService.NonExistentQueue;Sender")
	w.create("jobs", nil)
	if got := w.receive(nil); len(got) != 0 {
		t.Errorf("a queue that was made again has %v", got)
	}
}

func TestMessages(t *testing.T) {
	w := newWorld(t)
	w.create("jobs", nil)
	// Checksums as in the developer guide's example and as md5sum says.
	w.ask("SendMessage", in{"QueueUrl": jobs, "MessageBody": "hello", "MessageAttributes": in{"kind": in{"DataType": "String", "StringValue": "a"}}}, 200, `"MD5OfMessageBody":"5d41402abc4b2a76b9719d911017c592"`, "MessageId", "MD5OfMessageAttributes")
	w.restart()
	got := w.receive(nil)
	if len(got) != 1 || got[0]["Body"] != "hello" || got[0]["MD5OfBody"] != "5d41402abc4b2a76b9719d911017c592" {
		t.Fatalf("after a restart: %v", got)
	}
	system := got[0]["Attributes"].(map[string]any)
	if system["ApproximateReceiveCount"] != "1" || system["SentTimestamp"] != "1800000000000" || system["SenderId"] == "" {
		t.Errorf("%v", system)
	}
	if kind := got[0]["MessageAttributes"].(map[string]any)["kind"].(map[string]any); kind["StringValue"] != "a" {
		t.Errorf("%v", kind)
	}
	if again := w.receive(nil); len(again) != 0 {
		t.Errorf("out of sight: %v", again)
	}
	w.now = w.now.Add(30 * time.Second)
	again := w.receive(in{"VisibilityTimeout": 100})
	if len(again) != 1 || again[0]["Attributes"].(map[string]any)["ApproximateReceiveCount"] != "2" {
		t.Fatalf("%v", again)
	}
	w.ask("DeleteMessage", in{"QueueUrl": jobs, "ReceiptHandle": got[0]["ReceiptHandle"]}, 200) // an old one deletes nothing
	w.ask("ChangeMessageVisibility", in{"QueueUrl": jobs, "ReceiptHandle": got[0]["ReceiptHandle"], "VisibilityTimeout": 0}, 400, "MessageNotInflight")
	w.ask("ChangeMessageVisibility", in{"QueueUrl": jobs, "ReceiptHandle": again[0]["ReceiptHandle"], "VisibilityTimeout": 0}, 200)
	third := w.receive(nil)
	if len(third) != 1 {
		t.Fatalf("%v", third)
	}
	w.ask("DeleteMessage", in{"QueueUrl": jobs, "ReceiptHandle": third[0]["ReceiptHandle"]}, 200)
	w.ask("DeleteMessage", in{"QueueUrl": jobs, "ReceiptHandle": third[0]["ReceiptHandle"]}, 200)
	w.now = w.now.Add(time.Hour)
	if left := w.receive(nil); len(left) != 0 {
		t.Errorf("deleted: %v", left)
	}
	w.ask("SendMessage", in{"QueueUrl": jobs, "MessageBody": "later", "DelaySeconds": 10}, 200)
	if early := w.receive(nil); len(early) != 0 {
		t.Errorf("delayed: %v", early)
	}
	w.now = w.now.Add(345600 * time.Second)
	if late := w.receive(nil); len(late) != 0 {
		t.Errorf("older than the queue keeps it: %v", late)
	}
	w.ask("SendMessage", in{"QueueUrl": jobs, "MessageBody": "purged"}, 200)
	w.ask("PurgeQueue", in{"QueueUrl": jobs}, 200)
	if left := w.receive(nil); len(left) != 0 {
		t.Errorf("purged: %v", left)
	}
}

func TestBatches(t *testing.T) {
	w := newWorld(t)
	w.create("jobs", in{"MaximumMessageSize": "1024"})
	w.ask("SendMessageBatch", in{"QueueUrl": jobs, "Entries": []in{{"Id": "a", "MessageBody": "1"}, {"Id": "b", "MessageBody": strings.Repeat("x", 1025)}}}, 200,
		`"Successful":[{"Id":"a"`, `"Code":"InvalidParameterValue"`, `"SenderFault":true`)
	got := w.receive(nil)
	if len(got) != 1 {
		t.Fatalf("%v", got)
	}
	w.ask("DeleteMessageBatch", in{"QueueUrl": jobs, "Entries": []in{{"Id": "a", "ReceiptHandle": got[0]["ReceiptHandle"]}, {"Id": "b", "ReceiptHandle": "forged"}}}, 200, `"Successful":[{"Id":"a"}]`, "ReceiptHandleIsInvalid")
	for says, ids := range map[string][]string{"EmptyBatchRequest": {}, "BatchEntryIdsNotDistinct": {"a", "a"}, "InvalidBatchEntryId": {"a b"}, "TooManyEntriesInBatchRequest": strings.Split("abcdefghijk", "")} {
		entries := []in{}
		for _, id := range ids {
			entries = append(entries, in{"Id": id, "MessageBody": "x"})
		}
		w.ask("SendMessageBatch", in{"QueueUrl": jobs, "Entries": entries}, 400, says)
	}
	half := strings.Repeat("x", 1<<19)
	w.ask("SendMessageBatch", in{"QueueUrl": jobs, "Entries": []in{{"Id": "a", "MessageBody": half}, {"Id": "b", "MessageBody": half + "x"}}}, 400, "BatchRequestTooLong")
	w.wasAsked("sqs:SendMessage "+jobsARN, "sqs:DeleteMessage "+jobsARN)
}

// wasAsked fails if IAM was not asked one of these.
func (w *world) wasAsked(wants ...string) {
	w.t.Helper()
	asked := strings.Join(w.gate.Asked, "\n")
	for _, want := range wants {
		if !strings.Contains(asked, want) {
			w.t.Errorf("IAM is not asked %s:\n%s", want, asked)
		}
	}
}

// A refusal is one line, and changes nothing.
func TestRefusals(t *testing.T) {
	w := newWorld(t)
	w.create("jobs", nil)
	theirs := strings.Replace(jobs, account, "111111111111", 1)
	for _, c := range []struct {
		action string
		in     in
		says   string
	}{
		{"CreateQueue", in{"QueueName": "a/b"}, "InvalidParameterValue"},
		{"CreateQueue", in{"QueueName": "a.fifo"}, "no FIFO queues"},
		{"CreateQueue", in{"QueueName": "b", "Attributes": in{"FifoQueue": "true"}}, "FifoQueue"},
		{"CreateQueue", in{"QueueName": "b", "Attributes": in{"RedrivePolicy": "{}"}}, "RedrivePolicy"},
		{"CreateQueue", in{"QueueName": "b", "Attributes": in{"KmsMasterKeyId": "alias/aws/sqs"}}, "KmsMasterKeyId"},
		{"CreateQueue", in{"QueueName": "b", "Attributes": in{"Colour": "red"}}, "InvalidAttributeName"},
		{"CreateQueue", in{"QueueName": "b", "Attributes": in{"VisibilityTimeout": "43201"}}, "InvalidAttributeValue"},
		{"CreateQueue", in{"QueueName": "b", "Attributes": in{"SqsManagedSseEnabled": "yes"}}, "InvalidAttributeValue"},
		{"CreateQueue", in{"QueueName": "b", "Attributes": in{"Policy": "{}"}}, "InvalidAttributeValue"},
		{"CreateQueue", in{"QueueName": "b", "tags": in{"aws:x": "y"}}, "InvalidParameterValue"},
		{"SetQueueAttributes", in{"QueueUrl": jobs, "Attributes": in{"DelaySeconds": "-1"}}, "InvalidAttributeValue"},
		{"SetQueueAttributes", in{"QueueUrl": jobs, "Attributes": in{"Policy": `{"Statement":[{"Effect":"Allow","Action":"sqs:*","Resource":"*"}]}`}}, "needs Principal"},
		{"GetQueueAttributes", in{"QueueUrl": jobs, "AttributeNames": []string{"Colour"}}, "InvalidAttributeName"},
		{"GetQueueAttributes", in{"QueueUrl": theirs}, "AccessDeniedException"},
		{"SendMessage", in{"QueueUrl": theirs, "MessageBody": "x"}, "AccessDeniedException"},
		{"ReceiveMessage", in{"QueueUrl": theirs}, "AccessDeniedException"},
		{"GetQueueUrl", in{"QueueName": "jobs", "QueueOwnerAWSAccountId": "111111111111"}, "AccessDeniedException"},
		{"SendMessage", in{"QueueUrl": "jobs", "MessageBody": "x"}, "InvalidAddress"},
		{"SendMessage", in{"QueueUrl": jobs + "x", "MessageBody": "x"}, "QueueDoesNotExist"},
		{"SendMessage", in{"QueueUrl": jobs, "MessageBody": ""}, "MissingParameter"},
		{"SendMessage", in{"QueueUrl": jobs, "MessageBody": "\x01"}, "InvalidMessageContents"},
		{"SendMessage", in{"QueueUrl": jobs, "MessageBody": "x", "DelaySeconds": 901}, "DelaySeconds"},
		{"SendMessage", in{"QueueUrl": jobs, "MessageBody": "x", "MessageGroupId": "g"}, "does not support MessageGroupId"},
		{"SendMessage", in{"QueueUrl": jobs, "MessageBody": "x", "MessageAttributes": in{"a": in{"DataType": "String"}}}, "must use a value of that type"},
		{"SendMessage", in{"QueueUrl": jobs, "MessageBody": strings.Repeat("x", 1<<20+1)}, "InvalidParameterValue"},
		{"ReceiveMessage", in{"QueueUrl": jobs, "MaxNumberOfMessages": 11}, "MaxNumberOfMessages"},
		{"ReceiveMessage", in{"QueueUrl": jobs, "WaitTimeSeconds": 21}, "WaitTimeSeconds"},
		{"DeleteMessage", in{"QueueUrl": jobs, "ReceiptHandle": "forged"}, "ReceiptHandleIsInvalid"},
	} {
		w.ask(c.action, c.in, 400, c.says)
	}
	if got := w.receive(nil); len(got) != 0 {
		t.Errorf("sent: %v", got)
	}
	w.ask("ListQueues", in{}, 200, `{"QueueUrls":["`+jobs+`"]}`)
	w.ask("SendMessage", in{"QueueUrl": jobs, "MessageBody": strings.Repeat("x", 1<<20)}, 200)
	w.gate.Denies = true
	for _, action := range []string{"CreateQueue", "GetQueueUrl"} {
		w.ask(action, in{"QueueName": "c"}, 400, "AccessDeniedException")
	}
	w.ask("ReceiveMessage", in{"QueueUrl": jobs}, 400, "AccessDeniedException")
}

// A service sends by the policy of the queue alone.
func TestDeliver(t *testing.T) {
	const events = "events.amazonaws.com"
	statement := func(effect, service, more string) string {
		return `{"Version":"2012-10-17","Statement":[{"Effect":"` + effect + `","Principal":{"Service":` + service + `},"Action":"sqs:SendMessage","Resource":"` + jobsARN + `"` + more + `}]}`
	}
	both := `["events.amazonaws.com","sqs.amazonaws.com"]`
	for name, test := range map[string]struct {
		policy string
		takes  bool
	}{
		"no policy":          {"", false},
		"both services":      {statement("Allow", both, ""), true},
		"another service":    {statement("Allow", `"sqs.amazonaws.com"`, ""), false},
		"the rule":           {statement("Allow", both, `,"Condition":{"ArnEquals":{"aws:SourceArn":"`+aRule+`"}}`), true},
		"another rule":       {statement("Allow", both, `,"Condition":{"ArnEquals":{"aws:SourceArn":"`+aRule+`x"}}`), false},
		"the account":        {statement("Allow", both, `,"Condition":{"StringEquals":{"aws:SourceAccount":"`+account+`"}}`), true},
		"another account":    {statement("Allow", both, `,"Condition":{"StringEquals":{"aws:SourceAccount":"111111111111"}}`), false},
		"a deny":             {statement("Deny", both, ""), false},
		"another queue":      {strings.Replace(statement("Allow", both, ""), ":jobs", ":other", 1), false},
		"people only":        {`{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Principal":"*","Action":"sqs:*","Resource":"*"}]}`, false},
		"Karpenter's module": {`{"Version":"2012-10-17","Statement":[{"Sid":"SqsWrite","Effect":"Allow","Principal":{"Service":` + both + `},"Action":"sqs:SendMessage","Resource":"` + jobsARN + `"},{"Sid":"DenyHTTP","Effect":"Deny","Principal":"*","Action":"sqs:*","Resource":"` + jobsARN + `","Condition":{"StringEquals":{"aws:SecureTransport":"false"}}}]}`, true},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.create("jobs", in{"Policy": test.policy})
			to, err := arn.Parse(jobsARN)
			if err != nil {
				t.Fatal(err)
			}
			rule, err := arn.Parse(aRule)
			if err != nil {
				t.Fatal(err)
			}
			err = w.queues.Deliver(t.Context(), to, From{events, rule}, "{}")
			if test.takes != (err == nil) || !test.takes && !errors.Is(err, ErrRefused) {
				t.Errorf("delivered: %v", err)
			}
			if got := w.receive(nil); len(got) == 1 != test.takes {
				t.Errorf("received %v", got)
			}
			to.Account = "111111111111"
			if err := w.queues.Deliver(t.Context(), to, From{events, rule}, "{}"); !errors.Is(err, ErrRefused) {
				t.Errorf("a queue of another account: %v", err)
			}
			to.Account, to.Resource = account, "none"
			if err := w.queues.Deliver(t.Context(), to, From{events, rule}, "{}"); !errors.Is(err, ErrRefused) {
				t.Errorf("a queue that is not there: %v", err)
			}
		})
	}
}

// A queue refuses a message of a service for good if it never takes such a message.
func TestDeliverIsRefusedForGood(t *testing.T) {
	w := newWorld(t)
	w.create("jobs", in{"MaximumMessageSize": "1024", "Policy": `{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Principal":{"Service":"events.amazonaws.com"},"Action":"sqs:SendMessage","Resource":"` + jobsARN + `"}]}`})
	to, err := arn.Parse(jobsARN)
	if err != nil {
		t.Fatal(err)
	}
	rule, err := arn.Parse(aRule)
	if err != nil {
		t.Fatal(err)
	}
	for name, body := range map[string]string{"too large": strings.Repeat("x", 1025), "a character that no message has": "\uffff", "empty": ""} {
		if err := w.queues.Deliver(t.Context(), to, From{"events.amazonaws.com", rule}, body); !errors.Is(err, ErrRefused) {
			t.Errorf("%s: %v, want ErrRefused", name, err)
		}
	}
}

// A poll waits for a message that comes.
func TestLongPoll(t *testing.T) {
	w := newWorld(t)
	w.create("jobs", nil)
	w.queues.Now = time.Now
	w.queues.Store = queuestore.New(w.dir, time.Now)
	done := make(chan []map[string]any)
	go func() { done <- w.receive(in{"WaitTimeSeconds": 20}) }()
	<-time.After(50 * time.Millisecond)
	w2 := *w
	w2.ask("SendMessage", in{"QueueUrl": jobs, "MessageBody": "now"}, 200)
	select {
	case got := <-done:
		if len(got) != 1 || got[0]["Body"] != "now" {
			t.Errorf("received %v", got)
		}
	case <-time.After(10 * time.Second):
		t.Error("the message did not wake the poll")
	}
}

// waiting returns a world with the real clock, in which a receiver waits for a message until its context ends; the channel is
// closed when it is answered.
func waiting(t *testing.T) (w *world, poll func(context.Context) <-chan string) {
	t.Helper()
	w = newWorld(t)
	w.create("jobs", nil)
	w.queues.Now = time.Now
	w.queues.Store = queuestore.New(w.dir, time.Now)
	return w, func(ctx context.Context) <-chan string {
		done := make(chan string, 1)
		r := httptest.NewRequestWithContext(ctx, http.MethodPost, "/", strings.NewReader(`{"QueueUrl":"`+jobs+`","WaitTimeSeconds":20}`))
		r.Header.Set("Content-Type", "application/x-amz-json-1.0")
		r.Header.Set("X-Amz-Target", "AmazonSQS.ReceiveMessage")
		go func() {
			answer := httptest.NewRecorder()
			w.handler.ServeHTTP(answer, r)
			done <- answer.Body.String()
		}()
		return done
	}
}

// answered is what a receiver gets, who must not wait any longer.
func answered(t *testing.T, done <-chan string) string {
	t.Helper()
	select {
	case text := <-done:
		return text
	case <-time.After(10 * time.Second):
		t.Fatal("the receiver still waits")
		return ""
	}
}

// A receiver that went away while it waited takes no message from those that are there.
func TestAReceiverThatIsGoneTakesNothing(t *testing.T) {
	w, poll := waiting(t)
	ctx, leave := context.WithCancel(t.Context())
	done := poll(ctx)
	<-time.After(50 * time.Millisecond)
	leave()
	answered(t, done)
	w.ask("SendMessage", in{"QueueUrl": jobs, "MessageBody": "now"}, 200)
	if got := w.receive(nil); len(got) != 1 || got[0]["Attributes"].(map[string]any)["ApproximateReceiveCount"] != "1" {
		t.Errorf("received %v", got)
	}
}

// A receiver who waits is not judged by a policy that the queue no longer has, nor served from a queue that is gone.
func TestAReceiverWaitsWhileTheQueueChanges(t *testing.T) {
	deny := in{"QueueUrl": jobs, "Attributes": in{"Policy": `{"Version":"2012-10-17","Statement":[{"Effect":"Deny","Principal":"*","Action":"sqs:ReceiveMessage","Resource":"` + jobsARN + `"}]}`}}
	w, poll := waiting(t)
	done := poll(t.Context())
	<-time.After(50 * time.Millisecond)
	w.ask("SetQueueAttributes", deny, 200)
	w.ask("SendMessage", in{"QueueUrl": jobs, "MessageBody": "secret"}, 200)
	if text := answered(t, done); strings.Contains(text, "secret") {
		t.Errorf("received %s", text)
	}
	w, poll = waiting(t)
	done = poll(t.Context())
	<-time.After(50 * time.Millisecond)
	w.ask("DeleteQueue", in{"QueueUrl": jobs}, 200)
	if text := answered(t, done); !strings.Contains(text, "QueueDoesNotExist") {
		t.Errorf("of a queue that is gone: %s", text)
	}
}

// Receivers that wait do not take all connections of the account's endpoint.
func TestPollsAreBounded(t *testing.T) {
	w, poll := waiting(t)
	who := awsfronttest.Caller{}.Principal().String()
	var ends []func()
	for range maxPolls {
		end, ok := w.queues.polls.begin(who)
		if !ok {
			t.Fatal("a receiver may not wait")
		}
		ends = append(ends, end)
	}
	if text := answered(t, poll(t.Context())); strings.Contains(text, "Error") {
		t.Errorf("one receiver more: %s", text)
	}
	if _, ok := w.queues.polls.begin("somebody else"); !ok {
		t.Error("another user may not wait")
	}
	for _, end := range ends {
		end()
	}
	if _, ok := w.queues.polls.begin(who); !ok || len(w.queues.polls.of) != 2 {
		t.Errorf("left %v", w.queues.polls.of)
	}
}

// A queue that is made while the service sweeps at its start keeps its messages, and takes more.
func TestSweepSparesAQueueThatIsMadeMeanwhile(t *testing.T) {
	w := newWorld(t)
	w.create("old", nil)
	w.ask("SendMessage", in{"QueueUrl": strings.Replace(jobs, "jobs", "old", 1), "MessageBody": "old"}, 200)
	api, made := w.api.(client.WithWatch), false
	w.queues.Management = interceptor.NewClient(api, interceptor.Funcs{List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
		err := c.List(ctx, list, options...)
		if !made {
			made = true
			w.create("jobs", nil)                                                 //nolint:contextcheck // another request, of the test's context
			w.ask("SendMessage", in{"QueueUrl": jobs, "MessageBody": "new"}, 200) //nolint:contextcheck // the same
		}
		return err
	}})
	w.queues.Sweep(t.Context(), slog.New(slog.DiscardHandler))
	if got := w.receive(nil); len(got) != 1 {
		t.Errorf("received %v", got)
	}
	w.ask("SendMessage", in{"QueueUrl": jobs, "MessageBody": "more"}, 200)
}

// A full queue says so.
func TestFull(t *testing.T) {
	w := newWorld(t)
	w.create("jobs", nil)
	body := strings.Repeat("x", 1<<20)
	for i := range queuestore.MaxBytes>>20 + 1 {
		status, says := 200, "MessageId"
		if i == queuestore.MaxBytes>>20 {
			status, says = 400, "OverLimit"
		}
		w.ask("SendMessage", in{"QueueUrl": jobs, "MessageBody": body}, status, says)
	}
}
