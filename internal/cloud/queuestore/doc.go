// SPDX-License-Identifier: Apache-2.0

// Package queuestore keeps the messages of queues on disk: a folder for each queue, and a file for each message, which is
// whole and on the disk before Send returns. All files of a queue are read once, when it is first asked for; from then on
// the process that holds the store answers from memory. There is one such process.
//
// What happens if
//
//	the process is killed before Send returns    the message may be there: the sender does not know, and sends again
//	the kill comes after Send returned           the message is there
//	a kill while a message is received     the message comes again when its time out of sight is over
//	a kill before Delete returns           the message may come again
//	a file cannot be read                        the queue is not served, and the error says which file
//	a queue holds more than its bound            Send is refused with [ErrFull] until messages are deleted or expire
//	all queues together hold more than 256 MiB   Send is refused with [ErrFull] by each queue that holds more than 1 MiB
//	a message is older than the queue keeps it   dropped, whether it was received or not
package queuestore
