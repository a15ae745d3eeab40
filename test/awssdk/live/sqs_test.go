// SPDX-License-Identifier: Apache-2.0

package live

import (
	"fmt"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
)

func sqsActions() []action {
	name := aws.String("live")
	queue := func(w *world) *string {
		return need(w.sqs.GetQueueUrl(w.ctx(), &sqs.GetQueueUrlInput{QueueName: name})).QueueUrl
	}
	receive := func(w *world) []types.Message {
		return need(w.sqs.ReceiveMessage(w.ctx(), &sqs.ReceiveMessageInput{
			QueueUrl: queue(w), MaxNumberOfMessages: 10, WaitTimeSeconds: 20, MessageSystemAttributeNames: []types.MessageSystemAttributeName{types.MessageSystemAttributeNameAll}, MessageAttributeNames: []string{"All"},
		})).Messages
	}
	remove := func(w *world, m types.Message) {
		need(w.sqs.DeleteMessage(w.ctx(), &sqs.DeleteMessageInput{QueueUrl: queue(w), ReceiptHandle: m.ReceiptHandle}))
	}
	return []action{
		{"CreateQueue", func(w *world) {
			in := &sqs.CreateQueueInput{QueueName: name, Attributes: map[string]string{"MessageRetentionPeriod": "300", "SqsManagedSseEnabled": "true"}, Tags: map[string]string{"team": "a"}}
			need(w.sqs.CreateQueue(w.ctx(), in))
			need(w.sqs.CreateQueue(w.ctx(), in))
			_, err := w.sqs.CreateQueue(w.ctx(), &sqs.CreateQueueInput{QueueName: name, Attributes: map[string]string{"MessageRetentionPeriod": "400"}})
			w.refused("QueueAlreadyExists", err)
		}},
		{"GetQueueUrl", func(w *world) {
			_, err := w.sqs.GetQueueUrl(w.ctx(), &sqs.GetQueueUrlInput{QueueName: aws.String("none")})
			w.refused("AWS.SimpleQueueService.NonExistentQueue", err)
		}},
		{"ListQueues", func(w *world) {
			if out := need(w.sqs.ListQueues(w.ctx(), &sqs.ListQueuesInput{QueueNamePrefix: aws.String("li")})); fmt.Sprint(out.QueueUrls) != "["+*queue(w)+"]" {
				w.Errorf("%v", out.QueueUrls)
			}
		}},
		{"SetQueueAttributes", func(w *world) {
			policy := `{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Principal":{"Service":"events.amazonaws.com"},"Action":"sqs:SendMessage","Resource":"arn:aws:sqs:` + w.config.Region + ":" + account + `:live"}]}`
			need(w.sqs.SetQueueAttributes(w.ctx(), &sqs.SetQueueAttributesInput{QueueUrl: queue(w), Attributes: map[string]string{"VisibilityTimeout": "1", "Policy": policy}}))
			_, err := w.sqs.SetQueueAttributes(w.ctx(), &sqs.SetQueueAttributesInput{QueueUrl: queue(w), Attributes: map[string]string{"RedrivePolicy": "{}"}})
			w.refused("InvalidAttributeName", err)
		}},
		{"GetQueueAttributes", func(w *world) {
			out := need(w.sqs.GetQueueAttributes(w.ctx(), &sqs.GetQueueAttributesInput{QueueUrl: queue(w), AttributeNames: []types.QueueAttributeName{types.QueueAttributeNameAll}}))
			if a := out.Attributes; a["VisibilityTimeout"] != "1" || a["MessageRetentionPeriod"] != "300" || a["Policy"] == "" || a["QueueArn"] != "arn:aws:sqs:"+w.config.Region+":"+account+":live" {
				w.Errorf("%v", a)
			}
		}},
		{"TagQueue", func(w *world) {
			need(w.sqs.TagQueue(w.ctx(), &sqs.TagQueueInput{QueueUrl: queue(w), Tags: map[string]string{"stage": "b"}}))
		}},
		{"UntagQueue", func(w *world) {
			need(w.sqs.UntagQueue(w.ctx(), &sqs.UntagQueueInput{QueueUrl: queue(w), TagKeys: []string{"team"}}))
		}},
		{"ListQueueTags", func(w *world) {
			if out := need(w.sqs.ListQueueTags(w.ctx(), &sqs.ListQueueTagsInput{QueueUrl: queue(w)})); fmt.Sprint(out.Tags) != "map[stage:b]" {
				w.Errorf("%v", out.Tags)
			}
		}},
		{"SendMessage", func(w *world) { // the SDK compares checksums
			need(w.sqs.SendMessage(w.ctx(), &sqs.SendMessageInput{QueueUrl: queue(w), MessageBody: aws.String("first"), MessageAttributes: map[string]types.MessageAttributeValue{
				"kind": {DataType: aws.String("String"), StringValue: aws.String("a")}, "raw": {DataType: aws.String("Binary"), BinaryValue: []byte{1, 2}},
			}}))
		}},
		{"ReceiveMessage", func(w *world) {
			got := receive(w)
			if len(got) != 1 || *got[0].Body != "first" || got[0].Attributes["ApproximateReceiveCount"] != "1" || *got[0].MessageAttributes["kind"].StringValue != "a" || len(got[0].MessageAttributes["raw"].BinaryValue) != 2 {
				w.Fatalf("%+v", got)
			}
			if got = receive(w); len(got) != 1 || got[0].Attributes["ApproximateReceiveCount"] != "2" { // waits until it is visible again
				w.Errorf("%+v", got)
			}
			w.notes["receipt"] = *got[0].ReceiptHandle
		}},
		{"ChangeMessageVisibility", func(w *world) {
			need(w.sqs.ChangeMessageVisibility(w.ctx(), &sqs.ChangeMessageVisibilityInput{QueueUrl: queue(w), ReceiptHandle: aws.String(w.notes["receipt"]), VisibilityTimeout: 0}))
		}},
		{"DeleteMessage", func(w *world) {
			got := receive(w)
			if len(got) != 1 {
				w.Fatalf("%+v", got)
			}
			remove(w, got[0])
			remove(w, got[0])
		}},
		{"SendMessageBatch", func(w *world) {
			out := need(w.sqs.SendMessageBatch(w.ctx(), &sqs.SendMessageBatchInput{QueueUrl: queue(w), Entries: []types.SendMessageBatchRequestEntry{
				{Id: aws.String("a"), MessageBody: aws.String("second")}, {Id: aws.String("b"), MessageBody: aws.String("third")},
			}}))
			if len(out.Successful) != 2 || len(out.Failed) != 0 {
				w.Errorf("%+v", out)
			}
		}},
		{"DeleteMessageBatch", func(w *world) {
			var entries []types.DeleteMessageBatchRequestEntry
			for _, m := range receive(w) {
				entries = append(entries, types.DeleteMessageBatchRequestEntry{Id: m.MessageId, ReceiptHandle: m.ReceiptHandle})
			}
			if out := need(w.sqs.DeleteMessageBatch(w.ctx(), &sqs.DeleteMessageBatchInput{QueueUrl: queue(w), Entries: entries})); len(out.Successful) != 2 {
				w.Errorf("%+v", out)
			}
		}},
		{"PurgeQueue", func(w *world) { need(w.sqs.PurgeQueue(w.ctx(), &sqs.PurgeQueueInput{QueueUrl: queue(w)})) }},
		{"DeleteQueue", func(w *world) {
			url := queue(w)
			need(w.sqs.DeleteQueue(w.ctx(), &sqs.DeleteQueueInput{QueueUrl: url}))
			_, err := w.sqs.GetQueueAttributes(w.ctx(), &sqs.GetQueueAttributesInput{QueueUrl: url})
			w.refused("AWS.SimpleQueueService.NonExistentQueue", err)
		}},
	}
}
