// SPDX-License-Identifier: Apache-2.0

package sqs

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strconv"
	"time"

	"muster.dev/muster/internal/aws/awsfault"
	"muster.dev/muster/internal/aws/awsfront"
	"muster.dev/muster/internal/iam/iampolicy"
)

// The attributes that can be set.
const (
	attributePolicy     = "Policy"
	attributeDelay      = "DelaySeconds"
	attributeSize       = "MaximumMessageSize"
	attributeRetention  = "MessageRetentionPeriod"
	attributeWait       = "ReceiveMessageWaitTimeSeconds"
	attributeVisibility = "VisibilityTimeout"
	attributeEncrypted  = "SqsManagedSseEnabled"
)

// number is an attribute that is a number, with its bounds and default.
type number struct{ least, most, usual int }

// numbers are the numbers of the API reference of SQS, SetQueueAttributes.
var numbers = map[string]number{
	attributeDelay:      {0, 900, 0},
	attributeSize:       {1024, 1 << 20, 1 << 20},
	attributeRetention:  {60, 1209600, 345600},
	attributeWait:       {0, 20, 0},
	attributeVisibility: {0, 43200, 30},
}

// lacking are the attributes of what queues do not do here.
var lacking = map[string]string{
	"FifoQueue": "Muster has standard queues only", "ContentBasedDeduplication": "Muster has no FIFO queues", "DeduplicationScope": "Muster has no FIFO queues",
	"FifoThroughputLimit": "Muster has no FIFO queues", "RedrivePolicy": "Muster has no dead-letter queues", "RedriveAllowPolicy": "Muster has no dead-letter queues",
	"KmsMasterKeyId": "Muster's KMS keys encrypt nothing", "KmsDataKeyReusePeriodSeconds": "Muster's KMS keys encrypt nothing",
}

// get is a number of a queue: what was set, or else the default.
func (d queue) get(name string) int {
	n, err := strconv.Atoi(d.Attributes[name])
	if err != nil {
		return numbers[name].usual
	}
	return n
}

// encrypted is what was set of [attributeEncrypted], or else the default.
func (d queue) encrypted() string {
	if value := d.Attributes[attributeEncrypted]; value != "" {
		return value
	}
	return "true"
}

func (d queue) seconds(name string) time.Duration { return time.Duration(d.get(name)) * time.Second }

// set puts attributes into a queue. The text of one that is empty takes it back to its default.
func (q *Queues) set(d *queue, attributes map[string]string) error {
	all := maps.Clone(d.Attributes)
	if all == nil {
		all = map[string]string{}
	}
	policy := d.Policy
	for _, name := range slices.Sorted(maps.Keys(attributes)) {
		value := attributes[name]
		if why, is := lacking[name]; is && value != "" && value != "false" {
			return awsfault.Errorf(invalidName, "Muster does not support the attribute %s: %s. Leave it out", name, why)
		} else if is {
			continue
		}
		switch bounds, is := numbers[name]; {
		case value == "" && name != attributePolicy:
			delete(all, name)
		case is:
			if n, err := strconv.Atoi(value); err != nil || n < bounds.least || n > bounds.most {
				return awsfault.Errorf(invalidValue, "Invalid value for the parameter %s: %.40q. It must be a number from %d to %d", name, value, bounds.least, bounds.most)
			}
			all[name] = value
		case name == attributeEncrypted:
			if value != "true" && value != "false" {
				return awsfault.Errorf(invalidValue, "Invalid value for the parameter %s: %.40q. It must be true or false", name, value)
			}
			all[name] = value
		case name == attributePolicy:
			var err error
			if policy, err = q.bound(value); err != nil {
				return err
			}
		default:
			return awsfault.Errorf(invalidName, "Unknown Attribute %.100s.", name)
		}
	}
	d.Attributes, d.Policy = all, policy
	return nil
}

// bound is a policy as it is kept; an empty text is none.
func (q *Queues) bound(text string) (string, error) {
	if text == "" {
		return "", nil
	}
	bound, err := q.Bind(text)
	if malformed := (*iampolicy.Malformed)(nil); errors.As(err, &malformed) {
		return "", awsfault.Errorf(invalidValue, "Invalid value for the parameter Policy. %s", malformed.Error())
	}
	if err != nil {
		return "", away(err)
	}
	return bound, nil
}

type getAttributesInput struct {
	QueueURL       string
	AttributeNames []string
}

type getAttributesOutput struct{ Attributes map[string]string }

func (q *Queues) getQueueAttributes() awsfront.Spec[getAttributesInput, getAttributesOutput] {
	return awsfront.Spec[getAttributesInput, getAttributesOutput]{
		About: of(q, func(in *getAttributesInput) string { return in.QueueURL }, ""),
		Do: func(ctx context.Context, call *awsfront.Call, in *getAttributesInput) (*getAttributesOutput, error) {
			found, err := q.find(ctx, call, in.QueueURL)
			if err != nil {
				return nil, err
			}
			all, err := q.shown(call, found)
			if err != nil {
				return nil, err
			}
			chosen := map[string]string{}
			for _, name := range in.AttributeNames {
				value, is := all[name]
				_, no := lacking[name]
				switch {
				case name == "All":
					maps.Copy(chosen, all)
				case is:
					chosen[name] = value
				case !no && name != attributePolicy:
					return nil, awsfault.Errorf(invalidName, "Unknown Attribute %.100s.", name)
				}
			}
			return &getAttributesOutput{chosen}, nil
		},
	}
}

// shown are all attributes of a queue.
func (q *Queues) shown(call *awsfront.Call, r *record) (map[string]string, error) {
	counts, err := q.Store.Counts(r.Data.Messages, r.Data.seconds(attributeRetention))
	if err != nil {
		return nil, broken(err)
	}
	all := map[string]string{
		"QueueArn": q.ARN(call, r.Name), "CreatedTimestamp": strconv.FormatInt(r.Created.Unix(), 10), "LastModifiedTimestamp": strconv.FormatInt(r.Data.Modified, 10),
		"ApproximateNumberOfMessages": strconv.Itoa(counts.Visible), "ApproximateNumberOfMessagesNotVisible": strconv.Itoa(counts.Received),
		"ApproximateNumberOfMessagesDelayed": strconv.Itoa(counts.Delayed), attributeEncrypted: r.Data.encrypted(),
	}
	for name := range numbers {
		all[name] = strconv.Itoa(r.Data.get(name))
	}
	if r.Data.Policy != "" {
		all[attributePolicy] = q.Show(r.Data.Policy)
	}
	return all, nil
}

type setAttributesInput struct {
	QueueURL   string
	Attributes map[string]string
}

func (q *Queues) setQueueAttributes() awsfront.Spec[setAttributesInput, struct{}] {
	return awsfront.Spec[setAttributesInput, struct{}]{
		About: of(q, func(in *setAttributesInput) string { return in.QueueURL }, ""),
		Do: func(ctx context.Context, call *awsfront.Call, in *setAttributesInput) (*struct{}, error) {
			return nil, q.change(ctx, call, in.QueueURL, func(r *record) error {
				r.Data.Modified = call.Now.Unix()
				return q.set(&r.Data, in.Attributes)
			})
		},
	}
}

// change changes the queue of a URL.
func (q *Queues) change(ctx context.Context, call *awsfront.Call, url string, change func(*record) error) error {
	name, err := nameOf(call, url)
	if err != nil {
		return err
	}
	_, err = queues.Update(ctx, q.Management, queues.NameOf(name), change)
	return kept(err)
}
