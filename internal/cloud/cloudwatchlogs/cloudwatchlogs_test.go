// SPDX-License-Identifier: Apache-2.0

package cloudwatchlogs

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/aws/awsactions"
	"muster.dev/muster/internal/aws/awsfront"
	"muster.dev/muster/internal/aws/awsfront/awsfronttest"
	"muster.dev/muster/internal/aws/nexttoken"
	"muster.dev/muster/internal/cloud/awsresource"
	"muster.dev/muster/internal/plane/logstore"
	"muster.dev/muster/internal/plane/logstore/logstoretest"
)

const (
	account    = "000000000000"
	testRegion = "eu-west-1"
	aKey       = "arn:aws:kms:eu-west-1:000000000000:key/00000000-0000-0000-0000-000000000001"
	blue       = "/aws/eks/blue/cluster"
	blueARN    = "arn:aws:logs:eu-west-1:000000000000:log-group:/aws/eks/blue/cluster"
)

// world is a front with the actions over a management plane in memory, at a time that a test moves.
type world struct {
	t       *testing.T
	gate    *awsfronttest.Gate
	api     client.Client
	front   *awsfront.Front
	handler http.Handler
	now     time.Time
	server  *logstoretest.Server
	kept    *keeper
}

// keeper is a log store that somebody has asked for once.
type keeper struct {
	*logstore.Store
	asked   bool
	unbuilt error
}

func (k *keeper) Asked() bool { return k.asked }

func (k *keeper) Ready() error {
	k.asked = k.asked || k.unbuilt == nil
	return k.unbuilt
}

func newWorld(t *testing.T) *world {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	w := &world{t: t, gate: &awsfronttest.Gate{}, now: time.Unix(1800000000, 0)}
	w.kept = &keeper{Store: &logstore.Store{Socket: filepath.Join(t.TempDir(), "s"), Poll: time.Millisecond}}
	w.server = logstoretest.Start(t, w.kept.Socket)
	ctx, cancel := context.WithCancel(t.Context())
	var group sync.WaitGroup
	t.Cleanup(func() { cancel(); group.Wait() })
	w.api = fake.NewClientBuilder().WithScheme(scheme).WithInterceptorFuncs(awsfronttest.Numbered(func(_ int) time.Time { return w.now })).Build()
	w.front = awsfronttest.New(t, w.gate, func() time.Time { return w.now })
	var err error
	if err := Register(w.front, Config{Logs: w.kept, Run: func(run func(context.Context)) { group.Go(func() { run(ctx) }) }, Account: awsresource.Account{Management: w.api, Pages: nexttoken.NewSealer([nexttoken.KeySize]byte{1}), Region: testRegion}, Key: func(_ context.Context, account, arn string) error {
		if arn != aKey {
			return fmt.Errorf("there is no key %s of %s", arn, account)
		}
		return nil
	}}); err != nil {
		t.Fatal(err)
	}
	if w.handler, err = w.front.Handler(service); err != nil {
		t.Fatal(err)
	}
	return w
}

// ask sends a request, and compares what comes: a status, and parts of the body.
func (w *world) ask(action, body string, status int, has ...string) string {
	w.t.Helper()
	r := httptest.NewRequestWithContext(w.t.Context(), http.MethodPost, "/", strings.NewReader(body))
	r.Header.Set("Content-Type", "application/x-amz-json-1.1")
	r.Header.Set("X-Amz-Target", "Logs_20140328."+action)
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
	return text
}

func TestTheActionsFitTheTable(t *testing.T) {
	w := newWorld(t)
	if err := w.front.Check(); err != nil {
		t.Error(err)
	}
	fine := func(service, action string) bool {
		if service == "logs" {
			return w.front.Answers(service, action)
		}
		a, _ := awsactions.NewList().Find(service, action)
		return a.Mark != awsactions.Refused && !awsactions.NewList().NotYet(service, action)
	}
	for _, problem := range awsactions.Problems(fine) {
		t.Error(problem)
	}
}

// named is the body that names the log group blue, with more members.
func named(more ...string) string {
	return `{"logGroupName":"` + blue + `"` + strings.Join(append([]string{""}, more...), ",") + `}`
}

// arned is the body that names it by its ARN.
func arned(arn string, more ...string) string {
	return `{"resourceArn":"` + arn + `"` + strings.Join(append([]string{""}, more...), ",") + `}`
}

// What Terraform's aws_cloudwatch_log_group does in its life.
func TestLifeOfALogGroup(t *testing.T) {
	w := newWorld(t)
	w.ask("CreateLogGroup", named(`"tags":{"team":"a"}`, `"logGroupClass":"STANDARD"`), 200)
	w.ask("CreateLogGroup", named(), 400, "ResourceAlreadyExistsException", "The specified log group already exists")
	shown := w.ask("DescribeLogGroups", `{"logGroupNamePrefix":"`+blue+`"}`, 200, `"logGroupName":"`+blue+`"`, `"arn":"`+blueARN+`:*"`, `"logGroupArn":"`+blueARN+`"`,
		`"creationTime":1800000000000`, `"storedBytes":0`, `"metricFilterCount":0`, `"logGroupClass":"STANDARD"`, `"deletionProtectionEnabled":false`)
	for _, absent := range []string{"retentionInDays", "kmsKeyId", "nextToken"} {
		if strings.Contains(shown, absent) {
			t.Errorf("%s in %s", absent, shown)
		}
	}
	w.ask("PutRetentionPolicy", named(`"retentionInDays":90`), 200)
	w.ask("AssociateKmsKey", named(`"kmsKeyId":"`+aKey+`"`), 200)
	w.ask("DescribeLogGroups", `{"logGroupNamePattern":"EKS"}`, 200, `"retentionInDays":90`, `"kmsKeyId":"`+aKey+`"`)
	w.ask("DeleteRetentionPolicy", named(), 200)
	w.ask("DisassociateKmsKey", `{"resourceIdentifier":"`+blueARN+`"}`, 200)
	if again := w.ask("DescribeLogGroups", `{"logGroupIdentifiers":["`+blueARN+`"]}`, 200); again != shown {
		t.Errorf("%s, want %s", again, shown)
	}

	w.ask("ListTagsForResource", arned(blueARN), 200, `{"tags":{"team":"a"}}`)
	w.ask("TagResource", arned(blueARN, `"tags":{"b":"2"}`), 200)
	w.ask("UntagResource", arned(blueARN+":*", `"tagKeys":["team"]`), 200)
	w.ask("ListTagsLogGroup", named(), 200, `{"tags":{"b":"2"}}`)
	w.ask("TagLogGroup", named(`"tags":{"c":"3"}`), 200)
	w.ask("UntagLogGroup", named(`"tags":["b"]`), 200)
	w.ask("ListTagsForResource", arned(blueARN), 200, `{"tags":{"c":"3"}}`)

	w.ask("PutLogGroupDeletionProtection", `{"logGroupIdentifier":"`+blueARN+`","deletionProtectionEnabled":true}`, 200)
	w.ask("DeleteLogGroup", named(), 400, "ValidationException", "deletion protection")
	w.ask("PutLogGroupDeletionProtection", `{"logGroupIdentifier":"`+blue+`","deletionProtectionEnabled":false}`, 200)
	w.ask("DeleteLogGroup", named(), 200)
	w.ask("DeleteLogGroup", named(), 400, "ResourceNotFoundException", "The specified log group does not exist.")
	w.ask("DescribeLogGroups", `{}`, 200, `{"logGroups":[]}`)
	w.ask("PutRetentionPolicy", named(`"retentionInDays":90`), 400, "ResourceNotFoundException")
	w.ask("ListTagsForResource", arned(blueARN), 400, "ResourceNotFoundException")
}

func TestRefusals(t *testing.T) {
	w := newWorld(t)
	w.ask("CreateLogGroup", named(`"logGroupClass":"DELIVERY"`), 200)
	fifty := make([]string, 0, 51)
	for i := range cap(fifty) {
		fifty = append(fifty, fmt.Sprintf(`"g%d"`, i))
	}
	for _, c := range []struct{ action, body, code string }{
		{"CreateLogGroup", `{}`, invalidParameter},
		{"CreateLogGroup", `{"logGroupName":""}`, invalidParameter},
		{"CreateLogGroup", `{"logGroupName":"a b"}`, invalidParameter},
		{"CreateLogGroup", `{"logGroupName":"` + strings.Repeat("x", 513) + `"}`, invalidParameter},
		{"CreateLogGroup", `{"logGroupName":"a","logGroupClass":"COLD"}`, invalidParameter},
		{"CreateLogGroup", `{"logGroupName":"a","kmsKeyId":"none"}`, invalidParameter},
		{"CreateLogGroup", `{"logGroupName":"a","tags":{"aws:x":"1"}}`, invalidParameter},
		{"DescribeLogGroups", `{"limit":51}`, invalidParameter},
		{"DescribeLogGroups", `{"nextToken":"x"}`, invalidParameter},
		{"DescribeLogGroups", `{"logGroupNamePrefix":"a","logGroupNamePattern":"b"}`, invalidParameter},
		{"DescribeLogGroups", `{"logGroupClass":"COLD"}`, invalidParameter},
		{"DescribeLogGroups", `{"includeLinkedAccounts":true}`, invalidParameter},
		{"DescribeLogGroups", `{"logGroupIdentifiers":[` + strings.Join(fifty, ",") + `]}`, invalidParameter},
		{"PutRetentionPolicy", named(`"retentionInDays":2`), invalidParameter},
		{"PutRetentionPolicy", named(`"retentionInDays":7`), invalidParameter},
		{"AssociateKmsKey", named(`"kmsKeyId":"none"`), invalidParameter},
		{"AssociateKmsKey", `{"kmsKeyId":"` + aKey + `"}`, invalidParameter},
		{"AssociateKmsKey", named(`"resourceIdentifier":"`+blueARN+`"`, `"kmsKeyId":"`+aKey+`"`), invalidParameter},
		{"ListTagsForResource", arned("arn:aws:s3:::bucket"), invalidParameter},
		{"ListTagsForResource", arned("arn:aws:logs:us-east-1:000000000000:log-group:" + blue), notFound},
		{"TagResource", arned(blueARN, `"tags":{"":"x"}`), invalidParameter},
		{"PutLogEvents", named(`"logStreamName":"s"`, `"logEvents":[]`), invalidParameter},
		{"CreateLog", `{}`, "UnknownOperationException"},
	} {
		w.ask(c.action, c.body, 400, c.code)
	}
}

// Pages are in the order of names, and a group that comes or goes between two shifts nothing.
func TestPages(t *testing.T) {
	w := newWorld(t)
	for _, name := range []string{"e", "c", "a", "d", "b", "z"} {
		w.ask("CreateLogGroup", `{"logGroupName":"x/`+name+`"}`, 200)
	}
	w.ask("CreateLogGroup", `{"logGroupName":"other"}`, 200)
	var names []string
	token := ""
	for range 10 {
		var page struct {
			LogGroups []struct{ LogGroupName string }
			NextToken string
		}
		if err := json.Unmarshal([]byte(w.ask("DescribeLogGroups", `{"logGroupNamePrefix":"x/","limit":2`+token+`}`, 200)), &page); err != nil {
			t.Fatal(err)
		}
		for _, g := range page.LogGroups {
			names = append(names, g.LogGroupName)
		}
		if page.NextToken == "" {
			break
		}
		if token == "" {
			w.ask("DeleteLogGroup", `{"logGroupName":"x/b"}`, 200)
			w.ask("CreateLogGroup", `{"logGroupName":"x/aa"}`, 200)
		}
		token = `,"nextToken":"` + page.NextToken + `"`
	}
	if want := []string{"x/a", "x/b", "x/c", "x/d", "x/e", "x/z"}; !slices.Equal(names, want) {
		t.Errorf("%v, want %v", names, want)
	}
}

// IAM is asked about log groups, with their condition keys, and nothing happens that it denies.
func TestRights(t *testing.T) {
	w := newWorld(t)
	w.ask("CreateLogGroup", named(`"tags":{"team":"a"}`), 200)
	w.ask("TagResource", arned(blueARN+":*", `"tags":{"k":"v"}`), 200)
	w.ask("UntagLogGroup", named(`"tags":["k"]`), 200)
	w.ask("DescribeLogGroups", `{}`, 200)
	if want := []string{
		"logs:CreateLogGroup " + blueARN + ":log-stream: aws:requesttag/team=a aws:tagkeys=team",
		"logs:TagResource " + blueARN + " aws:requesttag/k=v aws:resourcetag/team=a aws:tagkeys=k",
		"logs:UntagLogGroup " + blueARN + ":log-stream: aws:resourcetag/k=v aws:resourcetag/team=a aws:tagkeys=k",
		"logs:DescribeLogGroups arn:aws:logs:eu-west-1:000000000000:log-group::log-stream:",
	}; !slices.Equal(w.gate.Asked, want) {
		t.Errorf("asked:\n%s\nwant:\n%s", strings.Join(w.gate.Asked, "\n"), strings.Join(want, "\n"))
	}
	w.gate.Asked = nil
	w.ask("CreateLogStream", named(`"logStreamName":"a"`), 200)
	if want := []string{"logs:CreateLogStream " + blueARN + ":log-stream:a aws:resourcetag/team=a"}; !slices.Equal(w.gate.Asked, want) {
		t.Errorf("asked %s, want %s", w.gate.Asked, want)
	}
	begun := w.query(named(`"queryString":"limit 1"`, `"startTime":1`, `"endTime":2`))
	w.gate.Asked = nil
	w.ask("GetQueryResults", `{"queryId":"`+begun+`"}`, 200)
	w.ask("StopQuery", `{"queryId":"x"}`, 400, invalidParameter)
	w.ask("GetLogEvents", named(`"logStreamName":"a"`), 200)
	w.ask("DescribeQueries", `{}`, 200)
	if want := []string{
		"logs:GetQueryResults " + blueARN + ":log-stream: aws:resourcetag/team=a",
		"logs:StopQuery arn:aws:logs:eu-west-1:000000000000:log-group::log-stream:",
		"logs:GetLogEvents " + blueARN + ":log-stream:a aws:resourcetag/team=a",
		"logs:DescribeQueries *",
	}; !slices.Equal(w.gate.Asked, want) {
		t.Errorf("asked:\n%s\nwant:\n%s", strings.Join(w.gate.Asked, "\n"), strings.Join(want, "\n"))
	}
	before := w.everything()
	w.gate.Denies = true
	for action, body := range map[string]string{
		"CreateLogGroup": `{"logGroupName":"b"}`, "DescribeLogGroups": `{}`, "DeleteLogGroup": named(), "PutRetentionPolicy": named(`"retentionInDays":90`),
		"DeleteRetentionPolicy": named(), "AssociateKmsKey": named(`"kmsKeyId":"` + aKey + `"`), "DisassociateKmsKey": named(),
		"PutLogGroupDeletionProtection": `{"logGroupIdentifier":"` + blue + `","deletionProtectionEnabled":true}`, "ListTagsForResource": arned(blueARN),
		"TagResource": arned(blueARN, `"tags":{"x":"y"}`), "UntagResource": arned(blueARN, `"tagKeys":["team"]`), "ListTagsLogGroup": named(),
		"TagLogGroup": named(`"tags":{"x":"y"}`), "UntagLogGroup": named(`"tags":["team"]`),
		"CreateLogStream": named(`"logStreamName":"b"`), "DeleteLogStream": named(`"logStreamName":"a"`), "DescribeLogStreams": named(),
		"PutLogEvents": named(`"logStreamName":"a"`, `"logEvents":[{"timestamp":1800000000000,"message":"x"}]`), "GetLogEvents": named(`"logStreamName":"a"`), "FilterLogEvents": named(),
		"StartQuery": named(`"queryString":"limit 1"`, `"startTime":1`, `"endTime":2`), "GetQueryResults": `{"queryId":"` + begun + `"}`, "StopQuery": `{"queryId":"` + begun + `"}`, "DescribeQueries": `{}`,
	} {
		w.ask(action, body, 400, "AccessDeniedException")
	}
	if after := w.everything(); after != before {
		t.Errorf("changed:\n%s\n%s", before, after)
	}
}

func (w *world) everything() string {
	w.t.Helper()
	var all v1alpha1.AWSRecordList
	if err := w.api.List(w.t.Context(), &all); err != nil {
		w.t.Fatal(err)
	}
	text, err := json.Marshal(all)
	if err != nil {
		w.t.Fatal(err)
	}
	return string(text)
}
