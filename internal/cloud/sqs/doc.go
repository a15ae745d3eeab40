// SPDX-License-Identifier: Apache-2.0

// Package sqs has the actions of SQS's API about standard queues and their messages. A queue is a record of the
// management plane, with its attributes, tags and policy; its messages are files (package queuestore). Features that
// queues do not have here, such as FIFO order and dead-letter queues, are refused by the name of their attribute.
//
// Who may send and receive is decided by the policies of the caller and by the queue's own policy together
// ([iampolicy.WithResource]). A service of the account, such as EventBridge, sends by the queue's policy alone: without a
// statement that names the service, and whose conditions the rule fulfils, nothing comes into the queue.
//
// What happens if
//
//	the service is killed after SendMessage was answered  the message is there
//	a receiver is killed before DeleteMessage             the message comes again when its visibility timeout is over
//	a queue is deleted and made again                     it is empty: its messages had an id of the first one
//	CreateQueue is sent twice                             the second is answered as the first; with other attributes it is refused with QueueNameExists
//	the URL is that of another account's queue            refused with AccessDeniedException: there is no way to other accounts here
//	a message is larger than the queue takes              refused with InvalidParameterValue, and nothing is kept
//	a queue is full                                       refused with OverLimit: 120,000 messages, or 64 MiB, or 256 MiB of all queues, of which 1 MiB is each queue's own
//	the rights of a receiver end while it waits           it gets nothing: IAM is asked again before messages are taken
//	the queue's policy or tags are changed meanwhile      it gets nothing, and is judged by these when it asks again
//	a receiver goes away while it waits                   it takes no message
//	a user or role has 64 receivers that wait             another one is answered at once
package sqs
