from curtsy.cli import main

main()
