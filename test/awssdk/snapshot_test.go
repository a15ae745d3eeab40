// SPDX-License-Identifier: Apache-2.0

package awssdk

import (
	"bytes"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"muster.dev/muster/internal/aws/awscodec"
	"muster.dev/muster/internal/aws/awsfault"
	"muster.dev/muster/internal/aws/awsshape"
	"muster.dev/muster/internal/aws/awstable"
	"muster.dev/muster/internal/aws/jsonvalue"
)

// snapshots is the directory of a client's module, which has a snapshot of each operation's request with all members,
// and the clients with a schema also have those of answers and errors.
func snapshots(t *testing.T, c client) string {
	t.Helper()
	name := map[string]string{"arc-zonal-shift": "arczonalshift", "logs": "cloudwatchlogs", "elasticfilesystem": "efs", "events": "eventbridge", "tagging": "resourcegroupstaggingapi"}[c.service]
	if name == "" {
		name = c.service
	}
	dir, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "github.com/aws/aws-sdk-go-v2/service/"+name).Output()
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(dir))
}

// snapshot reads a file: a line, headers, an empty line, a body.
func snapshot(t *testing.T, parts ...string) (first string, header map[string][]string, body string) {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join(parts...))
	if err != nil {
		t.Fatal(err)
	}
	first, rest, _ := strings.Cut(string(raw), "\n")
	head, body, _ := strings.Cut(strings.TrimPrefix(rest, "\n"), "\n\n")
	header = map[string][]string{}
	for line := range strings.Lines(head) {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), ": "); ok {
			header[name] = []string{value}
		}
	}
	return first, header, body
}

func TestSnapshotsOfRequests(t *testing.T) {
	for _, c := range clients() {
		service, dir := awstable.Service(c.service), snapshots(t, c)
		if _, err := os.Stat(filepath.Join(dir, "request_snapshot")); errors.Is(err, fs.ErrNotExist) && (c.service == "elasticfilesystem" || c.service == "fis") {
			continue // the client of EFS is older than snapshots
		}
		for _, op := range service.Operations {
			t.Run(c.service+"/"+op.Name, func(t *testing.T) {
				line, header, body := snapshot(t, dir, "request_snapshot", op.Name+".request.snap")
				method, target, _ := strings.Cut(line, " ")
				path, query, _ := strings.Cut(target, "?")
				request := awsshape.Request{Method: method, Path: path, Query: query, Header: header, Body: []byte(body)}
				call, err := awscodec.For(service).Route(service, request, awsshape.DefaultLimits())
				if err != nil || call.Operation != op {
					t.Fatalf("taken for %v, %v", call.Operation, err)
				}
				input, err := call.Input()
				if err != nil {
					t.Fatal(err)
				}
				if op.Input != nil && len(input) != len(op.Input.Members) {
					t.Errorf("decoded %d of %d members: %v", len(input), len(op.Input.Members), input)
				}
			})
		}
	}
}

// without are the answers and errors of SQS that its client has no snapshots of.
var without = []string{
	"ReceiveMessage", "SendMessage", "SendMessageBatch", "BatchRequestTooLong", "InvalidMessageContents",
	"KmsAccessDenied", "KmsDisabled", "KmsInvalidKeyUsage", "KmsInvalidState", "KmsNotFound", "KmsOptInRequired", "KmsThrottled",
}

func TestSnapshotsOfAnswers(t *testing.T) {
	checked := 0
	for _, c := range clients() {
		service, dir := awstable.Service(c.service), snapshots(t, c)
		if _, err := os.Stat(filepath.Join(dir, "response_snapshot")); errors.Is(err, fs.ErrNotExist) {
			continue // the clients of the query protocols have none
		}
		checked++
		codec := awscodec.For(service)
		for _, op := range service.Operations {
			if c.service == "sqs" && slices.Contains(without, op.Name) {
				continue
			}
			t.Run(c.service+"/"+op.Name, func(t *testing.T) {
				_, _, body := snapshot(t, dir, "response_snapshot", op.Name+".response.snap")
				var output any
				if op.Output != nil {
					read, err := jsonvalue.Read(op.Output, []byte(body), awsshape.DefaultLimits())
					if err != nil {
						t.Fatal(err)
					}
					output = read
				}
				response, err := codec.Encode(op, requestID, output)
				if err != nil {
					t.Fatal(err)
				}
				if op.Output != nil {
					if body == "" {
						body = "{}"
					}
					same(t, body, response.Body)
				}
			})
		}
		for _, fault := range service.Faults {
			if slices.Contains([]string{"InternalStreamingException", "SessionStreamingException", "SessionTimeoutException"}, fault.Code) {
				continue // events of a stream
			}
			if c.service == "sqs" && slices.Contains(without, fault.Code) {
				continue
			}
			t.Run(c.service+"/"+fault.Code, func(t *testing.T) {
				status, _, body := snapshot(t, dir, "response_snapshot", fault.Code+".error.snap")
				members, err := jsonvalue.Read(fault.Shape, []byte(body), awsshape.DefaultLimits())
				if err != nil {
					t.Fatal(err)
				}
				problem := &awsfault.Error{Code: fault.Code, Members: members}
				for _, name := range []string{"message", "Message"} {
					if text, ok := members[name].(string); ok {
						problem.Message = text
					}
				}
				response := codec.EncodeError(service, requestID, problem)
				if strconv.Itoa(fault.Status) != status {
					t.Errorf("the table says %d, want the model's %s", fault.Status, status)
				}
				if want := sent(service, fault); response.Status != want {
					t.Errorf("the status is %d, want %d", response.Status, want)
				}
				if problem.Message != "" {
					same(t, body, response.Body)
				}
			})
		}
	}
	if checked < 4 {
		t.Errorf("%d clients have snapshots of answers: want those of eks, ssm, kms and logs", checked)
	}
}

// same compares two JSON documents.
func same(t *testing.T, want string, got []byte) {
	t.Helper()
	var wantValue, gotValue any
	if err := json.Unmarshal([]byte(want), &wantValue); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(bytes.TrimSpace(got), &gotValue); err != nil {
		t.Fatalf("%v: %s", err, got)
	}
	if diff := cmp.Diff(wantValue, gotValue); diff != "" {
		t.Errorf("-snapshot +written:\n%s", diff)
	}
}
