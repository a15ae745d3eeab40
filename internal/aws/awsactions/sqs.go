// SPDX-License-Identifier: Apache-2.0

package awsactions

func sqsActions() []Action {
	queue := []string{"queue"}
	return []Action{
		{Name: "CreateQueue", Mark: Real, Resources: queue, Keys: tagged()},
		{Name: "DeleteQueue", Mark: Real, Resources: queue},
		{Name: "PurgeQueue", Mark: Real, Resources: queue},
		{Name: "GetQueueUrl", Mark: Real, Resources: queue},
		{Name: "ListQueues", Mark: Real},
		{Name: "GetQueueAttributes", Mark: Real, Resources: queue},
		{Name: "SetQueueAttributes", Mark: Real, Resources: queue},
		{Name: "TagQueue", Mark: Real, Resources: queue, Keys: tagged()},
		{Name: "UntagQueue", Mark: Real, Resources: queue, Keys: []string{"aws:TagKeys"}},
		{Name: "ListQueueTags", Mark: Real, Resources: queue},
		{Name: "SendMessage", Mark: Real, Resources: queue},
		{Name: "SendMessageBatch", Mark: Real, Resources: queue},
		{Name: "ReceiveMessage", Mark: Real, Resources: queue},
		{Name: "DeleteMessage", Mark: Real, Resources: queue},
		{Name: "DeleteMessageBatch", Mark: Real, Resources: queue},
		{Name: "ChangeMessageVisibility", Mark: Real, Resources: queue},
		{Name: "ChangeMessageVisibilityBatch", Mark: Refused, Reason: "Muster changes the visibility of one message at a time: use ChangeMessageVisibility"},
		{Name: "AddPermission", Mark: Refused, Reason: "Muster takes the policy of a queue as a whole: use SetQueueAttributes with Policy"},
		{Name: "RemovePermission", Mark: Refused, Reason: "Muster takes the policy of a queue as a whole: use SetQueueAttributes with Policy"},
		{Name: "ListDeadLetterSourceQueues", Mark: Refused, Reason: "Muster has no dead-letter queues"},
		{Name: "StartMessageMoveTask", Mark: Refused, Reason: "Muster has no dead-letter queues"},
		{Name: "ListMessageMoveTasks", Mark: Refused, Reason: "Muster has no dead-letter queues"},
		{Name: "CancelMessageMoveTask", Mark: Refused, Reason: "Muster has no dead-letter queues"},
	}
}

func sqsResources() []Resource {
	return []Resource{{Type: "queue", ARN: "arn:${Partition}:sqs:${Region}:${Account}:${QueueName}"}}
}
