// SPDX-License-Identifier: Apache-2.0

package resource

// messageTypes are the types of SQS and EventBridge.
func messageTypes() []Type {
	attributes := words("ContentBasedDeduplication DeduplicationScope DelaySeconds FifoThroughputLimit KmsDataKeyReusePeriodSeconds KmsMasterKeyId MaximumMessageSize " +
		"MessageRetentionPeriod ReceiveMessageWaitTimeSeconds RedriveAllowPolicy RedrivePolicy SqsManagedSseEnabled VisibilityTimeout")
	return []Type{
		{
			Name:       "AWS::SQS::Queue",
			Named:      "QueueName",
			Replaces:   words("FifoQueue QueueName"),
			Updates:    append(words("Tags"), attributes...),
			Attributes: words("Arn QueueName QueueUrl"),
			ID:         words("QueueUrl"),
			Create:     actions("sqs", "CreateQueue"),
			Read:       actions("sqs", "GetQueueAttributes ListQueueTags"),
			Update:     actions("sqs", "SetQueueAttributes TagQueue UntagQueue"),
			Delete:     actions("sqs", "DeleteQueue"),
			Once:       ByName,
			// These are entries of the member Attributes.
			Apart:   append(words("FifoQueue"), attributes...),
			Derived: map[string]func(map[string]any) (any, error){"Attributes": queueAttributes(append(words("FifoQueue"), attributes...))},
		},
		{
			Name:       "AWS::SQS::QueuePolicy",
			Required:   words("PolicyDocument Queues"),
			Updates:    words("PolicyDocument Queues"),
			Attributes: words("Id"),
			ID:         words("Id"),
			Create:     actions("sqs", "SetQueueAttributes"),
			Read:       actions("sqs", "GetQueueAttributes"),
			Update:     actions("sqs", "SetQueueAttributes"),
			Delete:     actions("sqs", "SetQueueAttributes"),
			Once:       ByValue,
			Apart:      words("PolicyDocument Queues"),
			Derived:    map[string]func(map[string]any) (any, error){"Attributes": queuePolicy},
			Beside:     words("QueueUrl"),
		},
		{
			Name:       "AWS::Events::Rule",
			Named:      "Name",
			Replaces:   words("EventBusName Name"),
			Updates:    words("Description EventPattern RoleArn ScheduleExpression State Targets"),
			Attributes: words("Arn"),
			ID:         words("Name"),
			Create:     actions("events", "PutRule PutTargets"),
			Read:       actions("events", "DescribeRule ListTagsForResource ListTargetsByRule"),
			Update:     actions("events", "PutRule PutTargets RemoveTargets"),
			Delete:     actions("events", "ListTargetsByRule RemoveTargets DeleteRule"),
			Once:       ByValue,
			Apart:      words("Targets"),
		},
	}
}
