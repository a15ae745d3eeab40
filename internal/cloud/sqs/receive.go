// SPDX-License-Identifier: Apache-2.0

package sqs

import (
	"context"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"

	"muster.dev/muster/internal/aws/awsfault"
	"muster.dev/muster/internal/aws/awsfront"
	"muster.dev/muster/internal/cloud/queuestore"
)

type receiveInput struct {
	QueueURL                                                           string
	MaxNumberOfMessages, VisibilityTimeout, WaitTimeSeconds            *int32
	AttributeNames, MessageSystemAttributeNames, MessageAttributeNames []string
}

type receiveOutput struct{ Messages []received }

type received struct {
	MessageID, ReceiptHandle, Body, MD5OfBody, MD5OfMessageAttributes string
	Attributes                                                        map[string]string
	MessageAttributes                                                 map[string]attributeValue
}

func (q *Queues) receiveMessage() awsfront.Spec[receiveInput, receiveOutput] {
	return awsfront.Spec[receiveInput, receiveOutput]{
		About: of(q, func(in *receiveInput) string { return in.QueueURL }, ""),
		Do:    q.doReceive,
	}
}

func (q *Queues) doReceive(ctx context.Context, call *awsfront.Call, in *receiveInput) (*receiveOutput, error) {
	found, err := q.find(ctx, call, in.QueueURL)
	if err != nil {
		return nil, err
	}
	most, err := within("MaxNumberOfMessages", in.MaxNumberOfMessages, 1, 10, 1)
	if err != nil {
		return nil, err
	}
	hidden, err := within(attributeVisibility, in.VisibilityTimeout, 0, numbers[attributeVisibility].most, found.Data.get(attributeVisibility))
	if err != nil {
		return nil, err
	}
	wait, err := within("WaitTimeSeconds", in.WaitTimeSeconds, 0, numbers[attributeWait].most, found.Data.get(attributeWait))
	if err != nil {
		return nil, err
	}
	if wait > 0 {
		changed, err := q.await(ctx, call, found, time.Duration(wait)*time.Second)
		if err != nil || changed {
			return &receiveOutput{}, err
		}
	}
	if err := awsfront.StillAllowed(ctx); err != nil {
		return nil, err
	}
	got, err := q.Store.Receive(found.Data.Messages, found.Data.seconds(attributeRetention), time.Duration(hidden)*time.Second, most, uuid.NewString)
	if err != nil && len(got) == 0 {
		return nil, broken(err)
	}
	out := &receiveOutput{}
	for i := range got {
		out.Messages = append(out.Messages, shownMessage(&got[i], in))
	}
	return out, nil
}

// within reads a number of a request; usual is what stands for one that is not there.
func within(name string, value *int32, least, most, usual int) (int, error) {
	if value == nil {
		return usual, nil
	}
	if n := int(*value); n >= least && n <= most {
		return n, nil
	}
	return 0, awsfault.Errorf(invalidParameter, "Value %d for parameter %s is invalid. Reason: Must be >= %d and <= %d, if provided.", *value, name, least, most)
}

func shownMessage(m *queuestore.Message, in *receiveInput) received {
	system := map[string]string{
		"SenderId": m.Sender, "SentTimestamp": millis(m.Sent), "ApproximateReceiveCount": strconv.Itoa(m.Received), "ApproximateFirstReceiveTimestamp": millis(m.First),
	}
	shown := received{MessageID: m.ID, ReceiptHandle: m.ID + "." + m.Receipt, Body: m.Body, MD5OfBody: md5Of([]byte(m.Body))}
	for _, name := range append(append([]string{}, in.AttributeNames...), in.MessageSystemAttributeNames...) {
		for known, value := range system {
			if name == "All" || name == known {
				if shown.Attributes == nil {
					shown.Attributes = map[string]string{}
				}
				shown.Attributes[known] = value
			}
		}
	}
	attributes := shownAttributes(m.Attributes, in.MessageAttributeNames)
	shown.MessageAttributes, shown.MD5OfMessageAttributes = valuesOf(attributes), md5OfAttributes(attributes)
	return shown
}

func millis(t time.Time) string { return strconv.FormatInt(t.UnixMilli(), 10) }

// receiptOf reads a receipt handle.
func receiptOf(handle string) (message, receipt string, err error) {
	message, receipt, found := strings.Cut(handle, ".")
	if !found || uuid.Validate(message) != nil || uuid.Validate(receipt) != nil {
		return "", "", awsfault.Errorf("ReceiptHandleIsInvalid", "The input receipt handle %.120q is not a valid receipt handle.", handle)
	}
	return message, receipt, nil
}

type deleteInput struct{ QueueURL, ReceiptHandle string }

func (q *Queues) deleteMessage() awsfront.Spec[deleteInput, struct{}] {
	return awsfront.Spec[deleteInput, struct{}]{
		About: of(q, func(in *deleteInput) string { return in.QueueURL }, ""),
		Do: func(ctx context.Context, call *awsfront.Call, in *deleteInput) (*struct{}, error) {
			found, err := q.find(ctx, call, in.QueueURL)
			if err != nil {
				return nil, err
			}
			return nil, q.remove(found, in.ReceiptHandle)
		},
	}
}

// remove deletes the message of a receipt handle. A message that is gone, or that was received again, is not an error.
func (q *Queues) remove(of *record, handle string) error {
	message, receipt, err := receiptOf(handle)
	if err != nil {
		return err
	}
	if _, err := q.Store.Delete(of.Data.Messages, message, receipt); err != nil {
		return broken(err)
	}
	return nil
}

type deleteBatchInput struct {
	QueueURL string
	Entries  []deleteEntry
}

type deleteEntry struct{ ID, ReceiptHandle string }

type deleteBatchOutput struct {
	Successful []batchDone
	Failed     []batchFailed
}

type batchDone struct{ ID string }

func (q *Queues) deleteMessageBatch() awsfront.Spec[deleteBatchInput, deleteBatchOutput] {
	return awsfront.Spec[deleteBatchInput, deleteBatchOutput]{
		About: of(q, func(in *deleteBatchInput) string { return in.QueueURL }, "sqs:DeleteMessage"),
		Do: func(ctx context.Context, call *awsfront.Call, in *deleteBatchInput) (*deleteBatchOutput, error) {
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
			out := &deleteBatchOutput{Successful: []batchDone{}, Failed: []batchFailed{}}
			for _, e := range in.Entries {
				if err := q.remove(found, e.ReceiptHandle); err != nil {
					out.Failed = append(out.Failed, failed(e.ID, err))
				} else {
					out.Successful = append(out.Successful, batchDone{e.ID})
				}
			}
			return out, nil
		},
	}
}

type visibilityInput struct {
	QueueURL, ReceiptHandle string
	VisibilityTimeout       *int32
}

func (q *Queues) changeVisibility() awsfront.Spec[visibilityInput, struct{}] {
	return awsfront.Spec[visibilityInput, struct{}]{
		About: of(q, func(in *visibilityInput) string { return in.QueueURL }, ""),
		Do: func(ctx context.Context, call *awsfront.Call, in *visibilityInput) (*struct{}, error) {
			found, err := q.find(ctx, call, in.QueueURL)
			if err != nil {
				return nil, err
			}
			hidden, err := within(attributeVisibility, in.VisibilityTimeout, 0, numbers[attributeVisibility].most, 0)
			if err != nil {
				return nil, err
			}
			message, receipt, err := receiptOf(in.ReceiptHandle)
			if err != nil {
				return nil, err
			}
			ours, err := q.Store.Hide(found.Data.Messages, message, receipt, time.Duration(hidden)*time.Second)
			switch {
			case err != nil:
				return nil, broken(err)
			case !ours:
				return nil, awsfault.Errorf("MessageNotInflight", "The specified message isn't in flight: it was deleted, or received again with another receipt handle.")
			}
			return nil, nil
		},
	}
}
