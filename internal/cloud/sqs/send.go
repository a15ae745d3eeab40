// SPDX-License-Identifier: Apache-2.0

package sqs

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/google/uuid"

	"muster.dev/muster/internal/aws/arn"
	"muster.dev/muster/internal/aws/awsfault"
	"muster.dev/muster/internal/aws/awsfront"
	"muster.dev/muster/internal/cloud/queuestore"
	"muster.dev/muster/internal/iam/iampolicy"
)

// actionSend is what IAM is asked about for a batch, too.
const actionSend = "sqs:SendMessage"

// maxBatch is how many entries a batch has, and maxBatchBytes how large its messages are together.
const (
	maxBatch      = 10
	maxBatchBytes = 1 << 20
)

// outgoing is one message that is sent.
type outgoing struct {
	ID                string // of an entry of a batch
	MessageBody       string
	DelaySeconds      *int32
	MessageAttributes map[string]attributeValue
}

type sendInput struct {
	QueueURL          string
	MessageBody       string
	DelaySeconds      *int32
	MessageAttributes map[string]attributeValue
}

type sendOutput struct{ MessageID, MD5OfMessageBody, MD5OfMessageAttributes string }

func (q *Queues) sendMessage() awsfront.Spec[sendInput, sendOutput] {
	return awsfront.Spec[sendInput, sendOutput]{
		About: of(q, func(in *sendInput) string { return in.QueueURL }, ""),
		Do: func(ctx context.Context, call *awsfront.Call, in *sendInput) (*sendOutput, error) {
			found, err := q.find(ctx, call, in.QueueURL)
			if err != nil {
				return nil, err
			}
			return q.send(found, call.Caller.Principal(), outgoing{MessageBody: in.MessageBody, DelaySeconds: in.DelaySeconds, MessageAttributes: in.MessageAttributes})
		},
	}
}

// send puts a message into a queue. It is on the disk when send returns.
func (q *Queues) send(to *record, sender arn.ARN, out outgoing) (*sendOutput, error) {
	attributes, err := attributesOf(out.MessageAttributes)
	if err != nil {
		return nil, err
	}
	if err := to.Data.check(out); err != nil {
		return nil, err
	}
	delay := to.Data.seconds(attributeDelay)
	if d := out.DelaySeconds; d != nil {
		if *d < 0 || int(*d) > numbers[attributeDelay].most {
			return nil, awsfault.Errorf(invalidParameter, "Value %d for parameter DelaySeconds is invalid. Reason: DelaySeconds must be >= 0 and <= %d.", *d, numbers[attributeDelay].most)
		}
		delay = time.Duration(*d) * time.Second
	}
	now := q.Now()
	m := queuestore.Message{ID: uuid.NewString(), Body: out.MessageBody, Attributes: attributes, Sender: sender.String(), Sent: now, Visible: now.Add(delay)}
	err = q.Store.Send(to.Data.Messages, to.Data.seconds(attributeRetention), m)
	switch {
	case errors.Is(err, queuestore.ErrGone):
		return nil, missing()
	case errors.Is(err, queuestore.ErrFull):
		return nil, awsfault.Errorf("OverLimit", "The queue %s is full: it holds at most %d messages, of %d MiB together, and all queues of the account hold %d MiB. Delete messages, or purge it",
			to.Name, queuestore.MaxMessages, queuestore.MaxBytes>>20, queuestore.MaxTotal>>20)
	case err != nil:
		return nil, broken(err)
	}
	return &sendOutput{m.ID, md5Of([]byte(m.Body)), md5OfAttributes(attributes)}, nil
}

// size is that of a message's body and attributes, in bytes.
func (out outgoing) size() int {
	size := len(out.MessageBody)
	for name, a := range out.MessageAttributes {
		size += len(name) + len(a.DataType) + len(a.BinaryValue)
		if a.StringValue != nil {
			size += len(*a.StringValue)
		}
	}
	return size
}

// check refuses a message that a queue does not take.
func (d queue) check(out outgoing) error {
	size := out.size()
	switch most := d.get(attributeSize); {
	case out.MessageBody == "":
		return awsfault.Errorf("MissingParameter", "The request must contain the parameter MessageBody.")
	case size > most:
		return awsfault.Errorf(invalidParameter, "One or more parameters are invalid. Reason: Message must be shorter than %d bytes: it has %d.", most, size)
	case !utf8.ValidString(out.MessageBody) || strings.ContainsFunc(out.MessageBody, unfit):
		return awsfault.Errorf("InvalidMessageContents", "Invalid characters found. Valid characters are #x9 | #xA | #xD | #x20 to #xD7FF | #xE000 to #xFFFD | #x10000 to #x10FFFF")
	}
	return nil
}

// unfit reports whether a character may not be in a message: those that XML has not.
func unfit(r rune) bool {
	return r < 0x20 && r != '\t' && r != '\n' && r != '\r' || r == 0xfffe || r == 0xffff
}

type batchInput struct {
	QueueURL string
	Entries  []outgoing
}

type batchOutput struct {
	Successful []batchSent
	Failed     []batchFailed
}

type batchSent struct{ ID, MessageID, MD5OfMessageBody, MD5OfMessageAttributes string }

type batchFailed struct {
	ID, Code, Message string
	SenderFault       bool
}

func (q *Queues) sendMessageBatch() awsfront.Spec[batchInput, batchOutput] {
	return awsfront.Spec[batchInput, batchOutput]{
		About: of(q, func(in *batchInput) string { return in.QueueURL }, actionSend),
		Do: func(ctx context.Context, call *awsfront.Call, in *batchInput) (*batchOutput, error) {
			found, err := q.find(ctx, call, in.QueueURL)
			if err != nil {
				return nil, err
			}
			var ids []string
			for _, e := range in.Entries {
				ids = append(ids, e.ID)
			}
			if err := checkBatch(ids); err != nil {
				return nil, err
			}
			total := 0
			for _, e := range in.Entries {
				total += e.size()
			}
			if total > maxBatchBytes {
				return nil, awsfault.Errorf("BatchRequestTooLong", "Batch requests cannot be longer than %d bytes. You have sent %d bytes.", maxBatchBytes, total)
			}
			out := &batchOutput{Successful: []batchSent{}, Failed: []batchFailed{}}
			for _, e := range in.Entries {
				sent, err := q.send(found, call.Caller.Principal(), e)
				if err != nil {
					out.Failed = append(out.Failed, failed(e.ID, err))
					continue
				}
				out.Successful = append(out.Successful, batchSent{e.ID, sent.MessageID, sent.MD5OfMessageBody, sent.MD5OfMessageAttributes})
			}
			return out, nil
		},
	}
}

// failed is why an entry of a batch was refused.
func failed(id string, err error) batchFailed {
	fault := (*awsfault.Error)(nil)
	if !errors.As(err, &fault) {
		return batchFailed{ID: id, Code: "InternalFailure", Message: "Something went wrong here; see the log of the service"}
	}
	return batchFailed{ID: id, Code: fault.Code, Message: fault.Message, SenderFault: fault.HTTPStatus() < 500}
}

// checkBatch checks the ids of a batch's entries.
func checkBatch(ids []string) error {
	switch {
	case len(ids) == 0:
		return awsfault.Errorf("EmptyBatchRequest", "There should be at least one entry in the request.")
	case len(ids) > maxBatch:
		return awsfault.Errorf("TooManyEntriesInBatchRequest", "Maximum number of entries per request are %d. You have sent %d.", maxBatch, len(ids))
	}
	seen := map[string]bool{}
	for _, id := range ids {
		const letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-"
		if id == "" || len(id) > 80 || strings.Trim(id, letters) != "" {
			return awsfault.Errorf("InvalidBatchEntryId", "A batch entry id can only contain alphanumeric characters, hyphens and underscores. It can be at most 80 letters long: %.100q", id)
		}
		if seen[id] {
			return awsfault.Errorf("BatchEntryIdsNotDistinct", "Id %s repeated.", id)
		}
		seen[id] = true
	}
	return nil
}

// From is a service of the account that sends to queues: EventBridge, for a rule.
type From struct {
	// Principal is the service as policies name it, such as events.amazonaws.com.
	Principal string
	// ARN is that of the resource for which it sends, which conditions on aws:SourceArn are about.
	ARN arn.ARN
}

// ErrRefused is the error of Deliver for a queue that does not take a message from a sender: there is none, its policy does
// not allow it, it is full, or it takes no messages of that size.
var ErrRefused = errors.New("the queue does not take it")

// Deliver sends a message to the queue of an ARN for a service of the account. The queue's own policy must allow it: the
// policies of users have no say.
func (q *Queues) Deliver(ctx context.Context, to arn.ARN, from From, body string) error {
	if to.Service != Service || to.Region != q.Region || to.Account != from.ARN.Account {
		return fmt.Errorf("%w: %s is not a queue of the account %s in %s", ErrRefused, to, from.ARN.Account, q.Region)
	}
	found, err := queues.Get(ctx, q.Management, queues.NameOf(to.Resource))
	if err = kept(err); err != nil {
		if fault := (*awsfault.Error)(nil); errors.As(err, &fault) && fault.Code == notFound {
			return fmt.Errorf("%w: %s is not there", ErrRefused, to)
		}
		return fmt.Errorf("reading the queue %s: %w", to, err)
	}
	if err := q.lets(found, to, from); err != nil {
		return err
	}
	_, err = q.send(found, from.ARN, outgoing{MessageBody: body})
	if fault := (*awsfault.Error)(nil); errors.As(err, &fault) && fault.HTTPStatus() < 500 { // it is full, or takes no such message
		return fmt.Errorf("%w: %w", ErrRefused, err)
	}
	return err
}

// lets asks the policy of a queue about a service.
func (q *Queues) lets(found *record, to arn.ARN, from From) error {
	if found.Data.Policy == "" {
		return fmt.Errorf("%w: %s has no policy, which would have to allow %s to %s", ErrRefused, to, actionSend, from.Principal)
	}
	policy, err := iampolicy.Parse(iampolicy.OfResource, found.Data.Policy)
	if err != nil {
		return fmt.Errorf("%w: the policy of %s cannot be read: %w", ErrRefused, to, err)
	}
	caller := iampolicy.Caller{Service: from.Principal}
	conditions := iampolicy.NewContext(caller, iampolicy.Facts{Now: q.Now(), Secure: true, Region: q.Region})
	conditions["aws:sourcearn"], conditions["aws:sourceaccount"] = []string{from.ARN.String()}, []string{from.ARN.Account}
	for key, value := range found.Tags {
		conditions["aws:ResourceTag/"+key] = []string{string(value)}
	}
	if d := policy.Evaluate(iampolicy.Request{Caller: caller, Action: actionSend, Resource: to.String(), Context: conditions}); d.Verdict != iampolicy.Allow {
		return fmt.Errorf("%w: the policy of %s does not allow %s to %s for %s: %s", ErrRefused, to, actionSend, from.Principal, from.ARN, d.Reason)
	}
	return nil
}
