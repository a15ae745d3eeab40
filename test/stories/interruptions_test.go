// SPDX-License-Identifier: Apache-2.0

package stories

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// queued is a message of a queue as the AWS CLI shows it.
type queued struct{ Body, ReceiptHandle string }

// TestInterruptionsReachAQueue takes events of an instance through rules of EventBridge into a queue, as Karpenter and the
// node termination handler hear of them, by the AWS CLI: an interruption, and the end of the instance. The service is
// killed between a message and its receiver. Messages that the account did not send do not come in.
//
//story:about cloud/events cloud/eventpattern cloud/sqs cloud/queuestore iam/iampolicy
func TestInterruptionsReachAQueue(t *testing.T) {
	t.Parallel()
	i := newInstallation(t)
	i.muster("up", "--nodes", "1", "--timeout", "3m")
	w := newIAM(t, i)
	url := w.interruptionQueue()

	id := w.mustKubectl("--context", "muster-management", "get", "machines", "-o", "jsonpath={.items[0].metadata.name}")
	i.muster("drill", id, "spot-interruption", "--for", "10m")
	if detail := w.nextEvent(url, "EC2 Spot Instance Interruption Warning", id); detail["instance-action"] != "terminate" {
		t.Errorf("interrupted: %v", detail)
	}

	// An acknowledged message is there after the service was killed.
	w.mustAWS(nil, "sqs", "send-message", "--queue-url", url, "--message-body", `{"detail-type":"kept","detail":{}}`)
	i.kill("serve")
	w.nextEvent(url, "kept", "")

	// The end of an instance, told by the service that came after.
	w.mustAWS(nil, "ec2", "terminate-instances", "--instance-ids", id)
	if detail := w.nextEvent(url, "EC2 Instance State-change Notification", id); detail["state"] != "shutting-down" && detail["state"] != "terminated" {
		t.Errorf("the instance that ends: %v", detail)
	}
	w.nothingForged(url)
}

// interruptionQueue makes a queue and the rules that send to it, with the policy and the patterns of terraform-aws-eks's
// module for Karpenter.
func (w *iam) interruptionQueue() string {
	w.t.Helper()
	const queue = "arn:aws:sqs:us-east-1:000000000000:interruptions"
	policy := `{"Version":"2012-10-17","Statement":[{"Sid":"SqsWrite","Effect":"Allow","Principal":{"Service":["events.amazonaws.com","sqs.amazonaws.com"]},"Action":"sqs:SendMessage","Resource":"` + queue + `"},` +
		`{"Sid":"DenyHTTP","Effect":"Deny","Principal":"*","Action":"sqs:*","Resource":"` + queue + `","Condition":{"StringEquals":{"aws:SecureTransport":"false"}}}]}`
	attributes, err := json.Marshal(map[string]string{"MessageRetentionPeriod": "300", "SqsManagedSseEnabled": "true", "Policy": policy})
	file := filepath.Join(w.t.TempDir(), "attributes.json")
	if err == nil {
		err = os.WriteFile(file, attributes, 0o600)
	}
	if err != nil {
		w.t.Fatal(err)
	}
	var made struct {
		QueueURL string `json:"QueueUrl"`
	}
	w.mustAWS(&made, "sqs", "create-queue", "--queue-name", "interruptions", "--attributes", "file://"+file)
	for _, rule := range [][3]string{
		{"health", "aws.health", "AWS Health Event"},
		{"spot", "aws.ec2", "EC2 Spot Instance Interruption Warning"},
		{"rebalance", "aws.ec2", "EC2 Instance Rebalance Recommendation"},
		{"state", "aws.ec2", "EC2 Instance State-change Notification"},
	} {
		w.mustAWS(nil, "events", "put-rule", "--name", rule[0], "--event-pattern", `{"source":["`+rule[1]+`"],"detail-type":["`+rule[2]+`"]}`)
		w.mustAWS(nil, "events", "put-targets", "--rule", rule[0], "--targets", "Id=queue,Arn="+queue)
	}
	return made.QueueURL
}

// nextEvent receives messages until one is of a kind and about an instance, deletes all of them, and returns the detail of
// the first such message.
func (w *iam) nextEvent(url, kind, id string) map[string]string {
	w.t.Helper()
	var found map[string]string
	w.eventually("the queue has "+kind, func() error {
		out, err := w.aws(w.admin, "sqs", "receive-message", "--queue-url", url, "--wait-time-seconds", "5", "--max-number-of-messages", "10")
		if err != nil {
			return err
		}
		var got struct{ Messages []queued }
		if out != "" {
			if err := json.Unmarshal([]byte(out), &got); err != nil {
				return err
			}
		}
		var kinds []string
		for _, m := range got.Messages {
			var event struct {
				Kind   string `json:"detail-type"`
				Detail map[string]string
			}
			if err := json.Unmarshal([]byte(m.Body), &event); err != nil {
				return err
			}
			w.mustAWS(nil, "sqs", "delete-message", "--queue-url", url, "--receipt-handle", m.ReceiptHandle)
			if kinds = append(kinds, event.Kind); found == nil && event.Kind == kind && event.Detail["instance-id"] == id {
				found = event.Detail
			}
		}
		if found == nil {
			return fmt.Errorf("got %q", kinds)
		}
		return nil
	})
	return found
}

// nothingForged tries to put messages into the queue without the right to it.
func (w *iam) nothingForged(url string) {
	w.t.Helper()
	alice := w.as(w.user("alice"))
	const forged = `{"version":"0","source":"aws.ec2","detail-type":"EC2 Spot Instance Interruption Warning","detail":{"instance-id":"i-0123456789abcdef0"}}`
	refused := func(who []string, code string, args ...string) {
		w.t.Helper()
		if _, err := w.aws(who, args...); err == nil || !strings.Contains(err.Error(), code) {
			w.t.Errorf("aws %s: %v, want %s", strings.Join(args, " "), err, code)
		}
	}
	refused(alice, "AccessDenied", "sqs", "send-message", "--queue-url", url, "--message-body", forged)
	refused(alice, "AccessDenied", "sqs", "receive-message", "--queue-url", url)
	refused(alice, "AccessDenied", "events", "put-targets", "--rule", "spot", "--targets", "Id=mine,Arn=arn:aws:sqs:us-east-1:000000000000:mine")
	refused(w.admin, "AccessDenied", "sqs", "send-message", "--queue-url", strings.Replace(url, "000000000000", "111111111111", 1), "--message-body", forged)
	var put struct {
		FailedEntryCount int
		Entries          []struct{ ErrorCode string }
	}
	w.mustAWS(&put, "events", "put-events", "--entries", `[{"Source":"aws.ec2","DetailType":"EC2 Spot Instance Interruption Warning","Detail":"{\"instance-id\":\"i-0123456789abcdef0\"}"}]`)
	if put.FailedEntryCount != 1 || put.Entries[0].ErrorCode != "NotAuthorizedForSourceException" {
		w.t.Errorf("an event of AWS by a user: %+v", put)
	}
	out, err := w.aws(w.admin, "sqs", "receive-message", "--queue-url", url, "--max-number-of-messages", "10")
	if err != nil || strings.Contains(out, "i-0123456789abcdef0") {
		w.t.Error(errors.Join(err, errors.New(out)))
	}
}
