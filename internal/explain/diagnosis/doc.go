// SPDX-License-Identifier: Apache-2.0

// Package diagnosis decides what is wrong with an object of a cluster: facts and the catalogue of causes in, a report
// out. It is pure.
//
// It names a cause only by evidence that the catalogue knows, and never by what is likely. Where evidence is there that
// it does not know, the report shows that evidence and says that the cause is not known.
//
// Which evidence counts:
//
//	of an object, such as a condition   as the object says it now, if the object has stood still for the cause's patience,
//	                                    and has said so for as long
//	of a line of a log                  besides, if it was written in the last [Recent] before the moment of the decision,
//	                                    and if the step that its cause is about is not done; nothing of a log counts for an
//	                                    object that is as it should be
//
// A machine's own words may be a lie of somebody who is root there. They can have that machine explained wrongly, and no
// other, and nothing acts by an explanation.
package diagnosis
