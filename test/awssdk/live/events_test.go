// SPDX-License-Identifier: Apache-2.0

package live

import (
	"encoding/json"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/eventbridge"
	"github.com/aws/aws-sdk-go-v2/service/eventbridge/types"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
)

// eventsActions are those about the rules of the default event bus. The queue of the rule is made and deleted here.
func eventsActions() []action {
	name, queueName := aws.String("live"), aws.String("live-events")
	ruleARN := func(w *world) *string {
		return aws.String("arn:aws:events:" + w.config.Region + ":" + account + ":rule/live")
	}
	queueARN := func(w *world) string { return "arn:aws:sqs:" + w.config.Region + ":" + account + ":live-events" }
	return []action{
		{"PutRule", func(w *world) {
			out := need(w.events.PutRule(w.ctx(), &eventbridge.PutRuleInput{Name: name, EventPattern: aws.String(`{"source":["live"]}`), Tags: []types.Tag{{Key: aws.String("team"), Value: aws.String("a")}}}))
			if *out.RuleArn != *ruleARN(w) {
				w.Errorf("%s", *out.RuleArn)
			}
			_, err := w.events.PutRule(w.ctx(), &eventbridge.PutRuleInput{Name: name, EventPattern: aws.String(`{"source":[{"regex":"live"}]}`)})
			w.refused("InvalidEventPatternException", err)
		}},
		{"DescribeRule", func(w *world) {
			w.has(need(w.events.DescribeRule(w.ctx(), &eventbridge.DescribeRuleInput{Name: name})), "Name", "Arn", "EventPattern", "State", "EventBusName", "CreatedBy")
			_, err := w.events.DescribeRule(w.ctx(), &eventbridge.DescribeRuleInput{Name: aws.String("none")})
			w.refused("ResourceNotFoundException", err)
		}},
		{"ListRules", func(w *world) {
			w.has(need(w.events.ListRules(w.ctx(), &eventbridge.ListRulesInput{NamePrefix: name})), "Rules[].Name", "Rules[].Arn", "Rules[].EventPattern", "Rules[].State")
		}},
		{"PutTargets", func(w *world) {
			policy, err := json.Marshal(map[string]any{"Version": "2012-10-17", "Statement": []any{map[string]any{
				"Effect": "Allow", "Principal": map[string]any{"Service": "events.amazonaws.com"}, "Action": "sqs:SendMessage", "Resource": queueARN(w),
				"Condition": map[string]any{"ArnEquals": map[string]any{"aws:SourceArn": *ruleARN(w)}},
			}}})
			must(err)
			w.notes["queue"] = *need(w.sqs.CreateQueue(w.ctx(), &sqs.CreateQueueInput{QueueName: queueName, Attributes: map[string]string{"Policy": string(policy)}})).QueueUrl
			if out := need(w.events.PutTargets(w.ctx(), &eventbridge.PutTargetsInput{Rule: name, Targets: []types.Target{{Id: aws.String("queue"), Arn: aws.String(queueARN(w))}}})); out.FailedEntryCount != 0 {
				w.Errorf("%+v", out)
			}
		}},
		{"ListTargetsByRule", func(w *world) {
			w.has(need(w.events.ListTargetsByRule(w.ctx(), &eventbridge.ListTargetsByRuleInput{Rule: name})), "Targets[].Id", "Targets[].Arn")
		}},
		{"PutEvents", func(w *world) {
			out := need(w.events.PutEvents(w.ctx(), &eventbridge.PutEventsInput{Entries: []types.PutEventsRequestEntry{
				{Source: aws.String("live"), DetailType: aws.String("d"), Detail: aws.String(`{"n":1}`)},
				{Source: aws.String("aws.ec2"), DetailType: aws.String("EC2 Spot Instance Interruption Warning"), Detail: aws.String(`{"instance-id":"i-0"}`)},
			}}))
			if out.FailedEntryCount != 1 || aws.ToString(out.Entries[1].ErrorCode) != "NotAuthorizedForSourceException" || aws.ToString(out.Entries[0].EventId) == "" {
				w.Errorf("%+v", out.Entries)
			}
			got := need(w.sqs.ReceiveMessage(w.ctx(), &sqs.ReceiveMessageInput{QueueUrl: aws.String(w.notes["queue"]), WaitTimeSeconds: 5, MaxNumberOfMessages: 10})).Messages
			var event struct {
				ID, Source string
				Detail     struct{ N int }
			}
			if len(got) != 1 || json.Unmarshal([]byte(*got[0].Body), &event) != nil || event.ID != *out.Entries[0].EventId || event.Detail.N != 1 {
				w.Errorf("%d messages, %+v", len(got), event)
			}
		}},
		{"DisableRule", func(w *world) {
			need(w.events.DisableRule(w.ctx(), &eventbridge.DisableRuleInput{Name: name}))
		}},
		{"EnableRule", func(w *world) {
			need(w.events.EnableRule(w.ctx(), &eventbridge.EnableRuleInput{Name: name}))
			if state := need(w.events.DescribeRule(w.ctx(), &eventbridge.DescribeRuleInput{Name: name})).State; state != types.RuleStateEnabled {
				w.Errorf("%s", state)
			}
		}},
		{"TagResource", func(w *world) {
			need(w.events.TagResource(w.ctx(), &eventbridge.TagResourceInput{ResourceARN: ruleARN(w), Tags: []types.Tag{{Key: aws.String("stage"), Value: aws.String("b")}}}))
		}},
		{"UntagResource", func(w *world) {
			need(w.events.UntagResource(w.ctx(), &eventbridge.UntagResourceInput{ResourceARN: ruleARN(w), TagKeys: []string{"team"}}))
		}},
		{"ListTagsForResource", func(w *world) {
			out := need(w.events.ListTagsForResource(w.ctx(), &eventbridge.ListTagsForResourceInput{ResourceARN: ruleARN(w)}))
			if len(out.Tags) != 1 || *out.Tags[0].Key != "stage" {
				w.Errorf("%s", fmt.Sprint(len(out.Tags)))
			}
		}},
		{"TestEventPattern", func(w *world) {
			if !need(w.events.TestEventPattern(w.ctx(), &eventbridge.TestEventPatternInput{EventPattern: aws.String(`{"source":["a"]}`), Event: aws.String(`{"source":"a"}`)})).Result {
				w.Errorf("does not match")
			}
		}},
		{"RemoveTargets", func(w *world) {
			_, err := w.events.DeleteRule(w.ctx(), &eventbridge.DeleteRuleInput{Name: name})
			w.refused("ValidationException", err)
			need(w.events.RemoveTargets(w.ctx(), &eventbridge.RemoveTargetsInput{Rule: name, Ids: []string{"queue"}}))
		}},
		{"DeleteRule", func(w *world) {
			need(w.events.DeleteRule(w.ctx(), &eventbridge.DeleteRuleInput{Name: name}))
			need(w.sqs.DeleteQueue(w.ctx(), &sqs.DeleteQueueInput{QueueUrl: aws.String(w.notes["queue"])}))
		}},
	}
}
