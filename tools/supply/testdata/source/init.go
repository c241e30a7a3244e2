package bad // want: has an init function

func init() { println("imported") }
