// SPDX-License-Identifier: Apache-2.0

// Package logshipper brings the logs of control planes to the account's log store (package logstore): each line once.
//
// The components write files, as they do without a log store, and the shipper reads them. A line is known by its file
// and the byte that it begins at. A file is known by what it begins with, since it is renamed, or copied and emptied, when
// it is rotated. After a round of reading, and after the log store has all of its lines on the disk, the shipper writes
// down how far it came ([Position]); nothing else is kept.
//
// A file that is begun, or begun again after anything has failed, is compared with the log store: lines that are there
// already are passed over. So it does not matter where a round was cut short.
//
// What happens if
//
//	the service dies, or restarts             it goes on where it had come to, and passes over what the log store has
//	the log store dies                        the round fails, and is made again once it runs
//	it dies with lines in memory              these lines are sent again, and the others are not
//	the disk is full                          the log store refuses lines, or dies; they are in their files meanwhile
//	a log is rotated meanwhile                its older parts are read to their end, in their order
//	it rotates away what was not read         these lines are lost, which is logged; reading goes on with the oldest part
//	a log cannot be read, or is renamed without end  the others are read, and status says so
//	a log grows as fast as it is read         the others are read first in the next round
//	a log type is switched off                its lines from then on are not kept: where it is switched on again, it begins with what comes then
//	it is switched on for the first time      the lines that its files have are kept, too: flags are told once, when a process starts
//	a line has no time                        it has that of the line before it in its file, as the lines of a stack have
//	a line is longer than 512 KiB             its beginning is kept; after 16 MiB what follows counts as another line
//	a line says that it is of the future      it has the time at which its file was written: the log store drops lines of the future
//	a line is older than the log store keeps  the log store drops it
//	a file has less than 128 bytes            it is read once it has more: too little tells it from others
//
// It trusts the names of the files. Strangers may have caused any line.
package logshipper
