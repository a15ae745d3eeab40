// SPDX-License-Identifier: Apache-2.0

package stories

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestEksctlReplayed sends the requests that eksctl 0.231 was recorded to send (testdata/eksctl.jsonl) for a cluster of a file: it is made with
// its network, roles and node group by stacks, read, scaled and deleted. TestEksctl runs the program itself where there is one.
//
//story:about cloud/cloudformation aws/cloudformation cloud/eks
//story:needs logs
func TestEksctlReplayed(t *testing.T) {
	t.Parallel()
	i := newInstallation(t)
	i.muster("up", "--nodes", "0", "--region", "eu-west-1")
	i.ready()
	w := newIAM(t, i)
	before := w.whatThereIs()
	w.mustAWS(nil, "ec2", "create-key-pair", "--key-name", "ironman-2022")
	c := newAWSClient(t, w)
	c.region = "eu-west-1"
	live := map[string]string{}
	for step := range slices.Values(recordedOfEksctl(t)) {
		if !t.Run(step.name, func(t *testing.T) {
			of := *c
			of.t = t
			for _, r := range step.requests {
				of.replay(w.step(t), r, live)
			}
		}) {
			return
		}
	}
	w.mustAWS(nil, "ec2", "delete-key-pair", "--key-name", "ironman-2022")
	w.mustAWS(nil, "logs", "delete-log-group", "--log-group-name", "/aws/eks/ironman-2022/cluster") // it outlives its cluster
	w.eventually("there is what there was before", func() error { return is(w.whatThereIs(), before) })
}

// recordedRequest is a request of eksctl, and what its answer was about.
type recordedRequest struct {
	Step, Service, Method, Path, Body string
	Header                            map[string]string
	Status                            int
	// Until is in the answer at last, such as a status; the request is sent until then.
	Until string
	// Values are parts of the answer that later requests may have, by what they are.
	Values map[string]string
}

type recordedStep struct {
	name     string
	requests []recordedRequest
}

// recordedOfEksctl reads the requests, by the command that sent them.
func recordedOfEksctl(t *testing.T) []recordedStep {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join("testdata", "eksctl.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	var steps []recordedStep
	for line := range strings.Lines(string(raw)) {
		var r recordedRequest
		if err := json.Unmarshal([]byte(line), &r); err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		if len(steps) == 0 || steps[len(steps)-1].name != r.Step {
			steps = append(steps, recordedStep{name: r.Step})
		}
		last := &steps[len(steps)-1]
		last.requests = append(last.requests, r)
	}
	return steps
}

// replay sends a request with the values of this account instead of those that were recorded, and waits for what its answer was.
func (c *awsClient) replay(w *iam, r recordedRequest, live map[string]string) {
	c.t.Helper()
	path, body := r.Path, r.Body
	for recorded, is := range live {
		path = strings.ReplaceAll(path, url.PathEscape(recorded), url.PathEscape(is))
		body = strings.ReplaceAll(strings.ReplaceAll(body, url.QueryEscape(recorded), url.QueryEscape(is)), recorded, is)
	}
	action := r.Method + " " + path
	if form, err := url.ParseQuery(body); err == nil && form.Get("Action") != "" {
		action = form.Get("Action")
	}
	w.eventually("eksctl's "+r.Service+" "+action, func() error {
		answer, _ := c.until(action, awsRequest{service: r.Service, action: action, method: r.Method, path: path, body: body, header: r.Header})
		if answer.status != r.Status {
			err := fmt.Errorf("it is answered with %d %s, and was with %d", answer.status, answer.body, r.Status)
			if r.Method == http.MethodGet || reading.MatchString(action) { // a new resource may not be seen at once
				return err
			}
			c.t.Fatalf("%s %s: %v", r.Service, action, err)
		}
		if !strings.Contains(answer.body, r.Until) {
			return errors.New("it does not have " + r.Until + ": " + answer.body)
		}
		found := answered(answer.body)
		for name, recorded := range r.Values {
			is := found[name]
			if is == "" {
				return fmt.Errorf("it has no %s: %s", name, answer.body)
			}
			those, these := strings.Split(recorded, ","), strings.Split(is, ",")
			for n := range min(len(those), len(these)) {
				live[those[n]] = these[n]
			}
		}
		return nil
	})
}

// reading are actions of the query protocol that change nothing.
var reading = regexp.MustCompile(`^(Describe|Get|List)`)

// valuesOfAnswers find in an answer what later requests refer to: the name of a value, if it is in the answer, and the value.
var valuesOfAnswers = map[string]*regexp.Regexp{
	"output": regexp.MustCompile(`<OutputKey>([^<]*)</OutputKey><OutputValue>([^<]*)</OutputValue>`),
	"stack":  regexp.MustCompile(`<StackId>(arn:[^<]*/)([0-9a-f-]{36})</StackId>`),
	"host":   regexp.MustCompile(`"(issuer)":"https://([^"/:]*)`),
	"id":     regexp.MustCompile(`"(issuer)":"https://[^"]*/id/([^"]*)"`),
	"update": regexp.MustCompile(`"update":\{[^}]*"(id)":"([^"]*)"`),
	"group":  regexp.MustCompile(`"autoScalingGroups":\[\{"(name)":"([^"]*)"`),
}

// answered are the values of an answer, by what they are and their names.
func answered(body string) map[string]string {
	values := map[string]string{}
	for what, form := range valuesOfAnswers {
		for _, match := range form.FindAllStringSubmatch(body, -1) {
			values[what+" "+match[1]] = match[2]
		}
	}
	return values
}
